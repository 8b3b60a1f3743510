/* predictions.h: what tests of predict share: a slide's entry, options, one heatmap in memory. */
#ifndef TESTS_UNIT_SUPPORT_PREDICTIONS_H
#define TESTS_UNIT_SUPPORT_PREDICTIONS_H
#include "heatmap/heatmap.h"
#include "heatmap/predict.h"

/* A line of a slide list with only a path and a name. */
struct slide_entry entry_of(char *path, char *name);

/* A network of the zoo with drawn weights and two classes; the rest as by default. */
struct predict_options options_of(const char *network, enum predict_mode mode, int64_t stride);

/* Writes a small network with zero padding and a window of 64 px, whose scores tell places apart,
 * to SCRATCH/heatmap_onnx/padded.onnx. The path is the caller's. */
char *padded_onnx(void);

/* Predicts one slide into a fresh folder and gives all scores, [height, width, classes], the
 * caller's. The test fails if that does. Only the numbers of *info may be used. */
float *predict_to(const char *folder_name, char *slide, const struct predict_options *options,
                  int threads, struct heatmap_info *info);

/* The largest difference; cells without tissue must be the same. */
double largest_gap(const float *a, const float *b, const struct heatmap_info *info);
#endif
