/* distill.h: fits a network that is run densely to its own frozen window scores, without labels.
 * A padded network gives different scores over a whole image than on single windows, because the
 * borders of a window no longer appear as zeros. Here the student is the dense form of the
 * teacher's network and starts with its weights; on crops larger than the window it is trained to
 * give, at the grid positions, what the teacher gives on the window there. Positions closer than
 * margin_px to the border of the crop are not used: they are in the halo of a dense run. Batch norm
 * statistics stay the teacher's. Used by one thread. */
#ifndef TRAIN_DISTILL_H
#define TRAIN_DISTILL_H
#include "train/loader.h"

/* Copies from config->distill.teacher what the teacher decides: network, padding, window, starting
 * weights, classes, normalisation, um/px. Does nothing without a teacher. */
bool distill_adopt(struct train_config *config, struct err *err);

struct distill;

/* Crops of crop_px; *dense gets the network to be trained, [batch, 3, crop_px, crop_px] ->
 * [batch, classes, h, w]. Both are the caller's; free with distill_free and graph_free. */
bool distill_new(const struct train_config *config, int64_t crop_px, int threads,
                 struct distill **out, struct graph **dense, struct err *err);
void distill_free(struct distill *distill); /* NULL-safe */

/* The student as it is used after training: the network at its window, with the dense one's floats.
 */
const struct graph *distill_model(const struct distill *distill);

/* How the student's patches are prepared: like the teacher's. */
const struct model_config *distill_described(const struct distill *distill);
/* Checks that the patches of the data, of patch_px, are resized and stained like the teacher's. */
bool distill_check_data(const struct distill *distill, const struct dataset *dataset,
                        int64_t patch_px, struct err *err);

/* Windows compared per crop. */
int64_t distill_windows(const struct distill *distill);

/* Compares the dense logits of a batch ("image", "sample") with the teacher's at places keyed by
 * (seed, epoch, sample). The loss (divergence of the probabilities, or half the square of the
 * difference of logits) is summed over the crops' mean over their windows and divided by `divisor`.
 * gradient [as dense] may be NULL. */
bool distill_compare(struct distill *distill, const struct batch *batch, uint64_t epoch,
                     const float *dense, double divisor, double *loss, float *gradient,
                     struct err *err);
/* The student's scores of the first n windows of the last comparison; scores [n, classes]. */
bool distill_scores(const struct distill *distill, int64_t n, float *scores, struct err *err);
/* Of the last comparison, [batch.n * windows]: the class that the teacher finds, the samples; valid
 * until the next. */
const int32_t *distill_labels(const struct distill *distill);
const int64_t *distill_samples(const struct distill *distill);

/* Sum of |dp| (of the last class) and number of all comparisons since the last call. */
void distill_difference(struct distill *distill, double *sum, double *n);
#endif
