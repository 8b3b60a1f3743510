/* text_windows.h: texts through a network, each in all its windows (text/sequence.h), whose scores
 * are averaged. */
#ifndef TRAIN_TEXT_WINDOWS_H
#define TRAIN_TEXT_WINDOWS_H
#include "net/plan/plan.h"
#include "text/sequence.h"

struct text_windows {
    const struct sequence *sequence;
    struct plan *plan;     /* for inference, of `batch` sequences */
    int ids, mask, output; /* its ports */
    int64_t batch, classes;
    bool independent; /* scores of the classes: a sigmoid of each, not a softmax of all */
};

/* outputs [n, classes]: of a text in one window as the network gives them; of several, those whose
 * scores are the mean of the scores of the windows. *at: the text that an error is about; -1: none
 * of them. Windows of all texts share the batches, in order: the outputs are those of any number of
 * threads but for rounding. */
bool text_windows_run(const struct text_windows *how, const char *const *texts, int64_t n,
                      float *outputs, int64_t *at, struct err *err);
#endif
