/* plan_images.h: a batch for inference whose first layers run image by image. There the maps are
 * large and the weights few: the activations of one image stay in the caches, every thread has its
 * own images and waits for no other thread, and branches are joined in place. The last layers have
 * more weights than pixels and run on the whole batch. Internal to src/net. */
#ifndef NET_PLAN_BY_IMAGE_H
#define NET_PLAN_BY_IMAGE_H
#include "net/plan/plan.h"

struct plan_images;

/* *out is NULL, with true returned, if there is nothing to split: one image, several inputs,
 * outputs among the first layers, or no single value between the two kinds of layers. Where the
 * network is cut depends only on its graph. */
bool plan_images_new(const struct graph *graph, const struct plan_options *options,
                     struct plan_images **out, struct err *err);
void plan_images_free(struct plan_images *images);

bool plan_images_forward(struct plan_images *images, struct err *err);
/* See plan.h. */
float *plan_images_input(const struct plan_images *images);
const float *plan_images_output(const struct plan_images *images, int i);
struct plan_memory plan_images_memory(const struct plan_images *images);
int plan_images_steps(const struct plan_images *images);
void plan_images_print(const struct plan_images *images, FILE *stream);
#endif
