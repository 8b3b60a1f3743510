/* evaluate_confusion.h: how a confusion matrix is printed and drawn, for `microtome evaluate
 * confusion` and `stage`. */
#ifndef CLI_EVALUATE_CONFUSION_H
#define CLI_EVALUATE_CONFUSION_H
#include "base/json.h"
#include "cli/evaluate.h"
#include "verdict/confusion.h"

/* The matrix with a line of numbers below, and a table of the classes. */
void confusion_print_text(FILE *out, const struct confusion *confusion,
                          const struct confusion_measures *measures, const char *unit,
                          enum kappa_weights weights);
/* Keys of the open object. */
void confusion_print_json(struct json_out *json, const struct confusion *confusion,
                          const struct confusion_measures *measures, enum kappa_weights weights);
/* Tables of counts, of classes and of all, separated by empty lines. */
void confusion_print_csv(FILE *out, const struct confusion *confusion,
                         const struct confusion_measures *measures);

/* PLOT<ending>.svg and .png, and PLOT<ending>_counts.csv; does nothing without --plot. */
bool confusion_draw(const struct evaluate_options *o, const char *ending,
                    const struct confusion *confusion, struct err *err);
#endif
