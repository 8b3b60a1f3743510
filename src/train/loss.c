/* loss.c: losses and their gradients with respect to the predictions. */
#include "train/loss.h"
#include <math.h>
#include <stddef.h>

static double class_weight(const struct loss_classes *spec, int64_t c)
{
    return spec->weights ? (double)spec->weights[c] : 1;
}

static bool check_labels(const struct loss_classes *spec, const int32_t *labels, double *total,
                         struct err *err)
{
    *total = 0;
    for (int64_t i = 0; i < spec->count * spec->places; i++) {
        if (labels[i] == LOSS_IGNORE)
            continue;
        if (labels[i] < 0 || labels[i] >= spec->classes)
            return err_set(err, ERR_FORMAT, "sample %lld has label %d; labels must be 0 to %lld",
                           (long long)(i / spec->places), labels[i], (long long)spec->classes - 1);
        *total += class_weight(spec, labels[i]);
    }
    return true;
}

/* What place i, labelled so, asks of class c: (1 - smoothing) on the label, or shared by two, plus
 * smoothing / classes everywhere, each class with its weight. */
static double softmax_target(const struct loss_classes *spec, int64_t i, int32_t label, int64_t c)
{
    double share = spec->shares ? (double)spec->shares[i] : 1, smoothing = (double)spec->smoothing;
    double own = c == label ? share : 0;
    if (spec->shares && c == spec->others[i])
        own += 1 - share;
    return (smoothing / (double)spec->classes + (1 - smoothing) * own) * class_weight(spec, c);
}

/* Place i: scores at s[c * stride]. Returns its weighted loss. */
static double softmax_place(const struct loss_classes *spec, int64_t i, const float *s,
                            int32_t label, double divisor, float *gradient)
{
    int64_t stride = spec->places, classes = spec->classes;
    double largest = -INFINITY, sum = 0, loss = 0, mass = 0;
    for (int64_t c = 0; c < classes; c++)
        if ((double)s[c * stride] > largest)
            largest = (double)s[c * stride];
    for (int64_t c = 0; c < classes; c++)
        sum += exp((double)s[c * stride] - largest);
    double log_sum = largest + log(sum);
    for (int64_t c = 0; c < classes; c++) {
        double target = softmax_target(spec, i, label, c);
        loss += target * (log_sum - (double)s[c * stride]);
        mass += target;
    }
    for (int64_t c = 0; gradient && c < classes; c++) {
        double target = softmax_target(spec, i, label, c);
        double p = exp((double)s[c * stride] - log_sum);
        gradient[c * stride] = (float)((p * mass - target) / divisor);
    }
    return loss;
}

bool loss_softmax(const struct loss_classes *spec, const float *scores, const int32_t *labels,
                  double *loss, float *gradient, struct err *err)
{
    double total, sum = 0;
    if (!check_labels(spec, labels, &total, err))
        return false;
    double divisor = spec->divisor > 0 ? spec->divisor : total > 0 ? total : 1;
    for (int64_t n = 0; n < spec->count; n++)
        for (int64_t p = 0; p < spec->places; p++) {
            int64_t at = n * spec->classes * spec->places + p;
            int32_t label = labels[n * spec->places + p];
            if (label != LOSS_IGNORE)
                sum += softmax_place(spec, n * spec->places + p, scores + at, label, divisor,
                                     gradient ? gradient + at : NULL);
            else
                for (int64_t c = 0; gradient && c < spec->classes; c++)
                    gradient[at + c * spec->places] = 0;
        }
    *loss = sum / divisor;
    return true;
}

#define DICE_MOST_CLASSES 16

/* p [classes] of one place */
static void softmax_of(const struct loss_classes *spec, const float *s, double *p)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < spec->classes; c++)
        largest = fmax(largest, (double)s[c * spec->places]);
    for (int64_t c = 0; c < spec->classes; c++)
        sum += p[c] = exp((double)s[c * spec->places] - largest);
    for (int64_t c = 0; c < spec->classes; c++)
        p[c] /= sum;
}

struct dice_sums {
    double both[DICE_MOST_CLASSES], all[DICE_MOST_CLASSES]; /* sum p t; sum p + sum t */
    int64_t counted;
};

static struct dice_sums dice_sums(const struct loss_classes *spec, const float *scores,
                                  const int32_t *labels)
{
    struct dice_sums sums = { 0 };
    double p[DICE_MOST_CLASSES];
    for (int64_t i = 0; i < spec->places; i++) {
        if (labels[i] == LOSS_IGNORE)
            continue;
        softmax_of(spec, scores + i, p);
        sums.counted++;
        for (int64_t c = 0; c < spec->classes; c++)
            sums.all[c] += p[c];
        sums.both[labels[i]] += p[labels[i]];
        sums.all[labels[i]]++;
    }
    return sums;
}

/* slope: of the sample's loss, divided. */
static void dice_gradient(const struct loss_classes *spec, const struct dice_sums *sums,
                          double slope, const float *scores, const int32_t *labels, float *gradient)
{
    double p[DICE_MOST_CLASSES], by_p[DICE_MOST_CLASSES];
    for (int64_t i = 0; i < spec->places; i++) {
        double mean = 0;
        if (labels[i] == LOSS_IGNORE)
            continue;
        softmax_of(spec, scores + i, p);
        for (int64_t c = 0; c < spec->classes; c++) {
            double whole = sums->all[c] + 1;
            by_p[c] =
                c == 0 ? 0 : ((2 * sums->both[c] + 1) / whole - (c == labels[i] ? 2 : 0)) / whole;
            mean += p[c] * by_p[c];
        }
        for (int64_t c = 0; c < spec->classes; c++)
            gradient[c * spec->places + i] += (float)(slope * p[c] * (by_p[c] - mean));
    }
}

void loss_dice(const struct loss_classes *spec, const float *scores, const int32_t *labels,
               double *loss, float *gradient)
{
    double sum = 0, divisor = spec->divisor > 0 ? spec->divisor : (double)spec->count;
    double others = (double)(spec->classes - 1);
    for (int64_t n = 0; n < spec->count; n++) {
        const float *s = scores + n * spec->classes * spec->places;
        const int32_t *l = labels + n * spec->places;
        struct dice_sums sums = dice_sums(spec, s, l);
        for (int64_t c = 1; sums.counted > 0 && c < spec->classes; c++)
            sum += (1 - (2 * sums.both[c] + 1) / (sums.all[c] + 1)) / others;
        if (gradient && sums.counted > 0)
            dice_gradient(spec, &sums, 1 / (others * divisor), s, l,
                          gradient + n * spec->classes * spec->places);
    }
    *loss = sum / divisor;
}

void loss_sigmoid(const struct loss_classes *spec, const float *scores, const float *targets,
                  double *loss, float *gradient)
{
    int64_t n = spec->count * spec->classes * spec->places, counted = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        counted += !isnan(targets[i]);
    double divisor = spec->divisor > 0 ? spec->divisor : counted > 0 ? (double)counted : 1;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)scores[i], t = (double)targets[i];
        double weight = class_weight(spec, i / spec->places % spec->classes);
        bool counts = !isnan(targets[i]);
        if (counts)
            sum += weight * (fmax(x, 0) - x * t + log1p(exp(-fabs(x))));
        if (gradient)
            gradient[i] = counts ? (float)(weight * (1 / (1 + exp(-x)) - t) / divisor) : 0;
    }
    *loss = sum / divisor;
}

/* Huber's loss; delta INFINITY with factor 2 is the square. */
static void residual_loss(int64_t n, double divisor, double delta, double factor, const float *x,
                          const float *target, double *loss, float *gradient)
{
    int64_t counted = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        counted += !isnan(target[i]);
    if (divisor <= 0)
        divisor = counted > 0 ? (double)counted : 1;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)target[i];
        bool counts = !isnan(target[i]), small = fabs(d) <= delta;
        if (counts)
            sum += small ? 0.5 * d * d : delta * (fabs(d) - 0.5 * delta);
        if (gradient)
            gradient[i] = counts ? (float)(factor * (small ? d : copysign(delta, d)) / divisor) : 0;
    }
    *loss = factor * sum / divisor;
}

void loss_mse(int64_t n, double divisor, const float *x, const float *target, double *loss,
              float *gradient)
{
    residual_loss(n, divisor, INFINITY, 2, x, target, loss, gradient);
}

void loss_huber(int64_t n, double divisor, float delta, const float *x, const float *target,
                double *loss, float *gradient)
{
    residual_loss(n, divisor, (double)delta, 1, x, target, loss, gradient);
}

double loss_row_mse(int64_t n, double factor, const float *x, const float *target, float *gradient)
{
    float scale = (float)(2 * factor / (double)n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        float apart = x[i] - target[i];
        sum += (double)(apart * apart);
        if (gradient)
            gradient[i] = scale * apart;
    }
    return sum / (double)n;
}
