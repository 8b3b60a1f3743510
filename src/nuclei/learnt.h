/* learnt.h: nuclei found by a network of objective segment. It gives every pixel the probabilities
 * of background, inside and boundary; a nucleus is a hill of "inside" within what is not
 * background, divided by the same watershed as in nuclei_find. */
#ifndef NUCLEI_LEARNT_H
#define NUCLEI_LEARNT_H
#include "nuclei/nuclei_slide.h"

struct nuclei_net;

/* path: a model as for predict --model (a folder of train, .safetensors or .onnx). A model that was
 * not trained to segment is an error. Of the settings it uses fill_um2, min_distance_um and the
 * areas. threads: that may use it at a time; others wait. *out is the caller's; close with
 * nuclei_net_close. */
bool nuclei_net_open(const char *path, const struct nuclei_settings *settings, int threads,
                     struct nuclei_net **out, struct err *err);
void nuclei_net_close(struct nuclei_net *net); /* NULL-safe */

/* For nuclei_options; the net's. */
const struct nuclei_finder *nuclei_net_finder(const struct nuclei_net *net);

/* As nuclei_find. An image of another um/px than the network was trained at is resized for it, and
 * its answer is resized back, so that the labels have the image's size. The network sees windows of
 * one size, each on one thread: the number of threads changes no byte. Memory: about 40 bytes per
 * pixel. Thread-safe. */
bool nuclei_net_find(struct nuclei_net *net, const struct image *rgb, double mpp,
                     struct nuclei_labels *out, struct err *err);

/* The network's answer alone: planes [2, height, width] of the probabilities of inside and of
 * boundary, at the size of the image; the caller's. */
bool nuclei_net_planes(struct nuclei_net *net, const struct image *rgb, double mpp, float **out,
                       struct err *err);
#endif
