/* loss.h: losses on plain tensors. Each returns the mean loss (summed in double, in a fixed order)
 * and writes its gradient with respect to the predictions. */
#ifndef TRAIN_LOSS_H
#define TRAIN_LOSS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

#define LOSS_IGNORE INT32_MIN

/* Scores are [count, classes, places]: places is 1 for one label per image, H * W for one label per
 * pixel. */
struct loss_classes {
    int64_t count, classes, places;
    const float *weights; /* [classes], or NULL: all 1 */
    double divisor;       /* 0: the sum of the weights of the labels that count (as in PyTorch);
                           * else the sum is divided by this: the global batch over all ranks */
    float smoothing;      /* label smoothing in [0, 1), softmax only */
    /* [count, places] both, or NULL; softmax only: the share of the target that the label has; the
     * rest belongs to the other label (mixup) */
    const float *shares;
    const int32_t *others;
};

/* Softmax cross-entropy. labels [count, places]; LOSS_IGNORE does not count. gradient [as scores]
 * may be NULL. A label out of range is an error. */
bool loss_softmax(const struct loss_classes *spec, const float *scores, const int32_t *labels,
                  double *loss, float *gradient, struct err *err);

/* Soft Dice: for each sample the mean over the classes but the first of 1 - (2 sum p t + 1) /
 * (sum p + sum t + 1), where p is the softmax of the scores and t is 1 where the label is the
 * class; places with LOSS_IGNORE count in no sum. The sum over samples is divided by divisor (0:
 * count). A sample whose places are all ignored does not count. weights, smoothing and shares are
 * not looked at; labels must be in range. The gradient is added to what is there; it may be NULL.
 */
void loss_dice(const struct loss_classes *spec, const float *scores, const int32_t *labels,
               double *loss, float *gradient);

/* Sigmoid cross-entropy: every class is an independent yes or no. targets [as scores] in [0, 1];
 * NaN does not count. weights multiply the loss of a class; without a divisor the mean is over the
 * elements that count (as PyTorch: weights are not in the denominator). */
void loss_sigmoid(const struct loss_classes *spec, const float *scores, const float *targets,
                  double *loss, float *gradient);

/* Mean over n elements; divisor 0: n. NaN targets do not count. */
void loss_mse(int64_t n, double divisor, const float *x, const float *target, double *loss,
              float *gradient);
/* Quadratic below delta, linear beyond (PyTorch's HuberLoss). */
void loss_huber(int64_t n, double divisor, float delta, const float *x, const float *target,
                double *loss, float *gradient);
/* The mean squared error of n numbers; its gradient, times `factor`, is written unless it is NULL.
 */
double loss_row_mse(int64_t n, double factor, const float *x, const float *target, float *gradient);
#endif
