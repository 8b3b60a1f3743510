/* confusion.h: how often each class was called each class -> accuracy, agreement beyond chance, and
 * precision and recall of every class, as scikit-learn defines them. */
#ifndef VERDICT_CONFUSION_H
#define VERDICT_CONFUSION_H
#include <stdint.h>
#include "base/ctx.h"
#include "verdict/class_list.h"

struct confusion {
    struct class_list classes;
    int64_t *counts; /* [classes, classes]: rows are the truth */
};

/* Copies the names. *out is the caller's; free with confusion_free. */
bool confusion_new(const struct class_list *classes, struct confusion *out, struct err *err);
void confusion_free(struct confusion *confusion); /* also fine on a zeroed struct */

static inline void confusion_add(struct confusion *confusion, int truth, int called, int64_t n)
{
    confusion->counts[(size_t)truth * confusion->classes.n + (size_t)called] += n;
}

/* How far apart two classes are in Cohen's kappa: any two the same; by the distance of their
 * numbers; by its square. */
enum kappa_weights { KAPPA_NONE, KAPPA_LINEAR, KAPPA_QUADRATIC };
extern const char *const kappa_weights_names[]; /* NULL-terminated, in the order of the enum */

/* Of one class against the others; NaN where undefined. */
struct confusion_class {
    int64_t truth, called, right;
    double precision;   /* of what is called this class; NaN: nothing is */
    double recall;      /* of what is this class (sensitivity); NaN: nothing is */
    double specificity; /* of what is not this class, the share not called it; NaN: all is */
    double f1;          /* harmonic mean of precision and recall; NaN: neither is nor is called */
};

/* NaN where undefined. */
struct confusion_measures {
    int64_t n;
    double accuracy;
    double balanced_accuracy;     /* mean recall of the classes that occur */
    double macro_f1, weighted_f1; /* mean F1 of the classes that occur or are called; weighted by
                                   * how often they occur */
    double kappa; /* Cohen's, with the weights asked for; 1: full agreement, 0: as by
                   * chance; NaN: all is one class and is called that */
    double mcc;   /* Matthews' correlation (Gorodkin's for more than two classes);
                   * NaN: all is, or is called, one class */
    struct confusion_class *classes;
};

/* *out is the caller's; free(out->classes). Without any counts it is an error. */
bool confusion_measure(const struct confusion *confusion, enum kappa_weights weights,
                       struct confusion_measures *out, struct err *err);

double confusion_kappa(const int64_t *counts, size_t n_classes, enum kappa_weights weights);
/* The 2.5 and 97.5 % quantiles of kappa if the pairs of truth and call are drawn again as often as
 * there are. Replicates without a kappa are drawn again. */
bool confusion_kappa_interval(const struct confusion *confusion, enum kappa_weights weights,
                              int64_t replicates, uint64_t seed, double *low, double *high,
                              struct err *err);

/* A table with the header truth,<class>.. and a row per class, as training writes it. */
void confusion_put_csv(const struct confusion *confusion, FILE *stream);
#endif
