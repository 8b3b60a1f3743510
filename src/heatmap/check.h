/* check.h: how dense scores differ from those of the sliding window, and the mapping of logits that
 * corrects for it, from random windows of a cohort. Private to this folder. */
#ifndef HEATMAP_CHECK_H
#define HEATMAP_CHECK_H
#include "heatmap/ensemble.h"
#include "heatmap/heatmap.h"

/* Logits of the same windows in both modes. */
struct check_sample {
    int64_t n, room; /* windows */
    int n_models;
    int n_symmetries; /* of each window: 8 in a run with test-time augmentation, else 1 */
    int64_t n_classes;
    float *dense, *window; /* [n, models, symmetries, classes] */
};

bool check_sample_add(struct check_sample *sample, const float *dense, const float *window,
                      struct err *err); /* one window: [models, symmetries, classes] each */
void check_sample_free(struct check_sample *sample);

/* A line from dense logits to window logits for every model and class: sets gain and offset. */
bool check_calibrate(const struct check_sample *sample, struct ensemble *ensemble, struct err *err);

/* Of the scores averaged over models and symmetries, with the ensemble's calibration where it has
 * one. Over all classes but the first where there are several. */
bool check_measure(const struct check_sample *sample, const struct ensemble *ensemble,
                   struct heatmap_check *out, struct err *err);
#endif
