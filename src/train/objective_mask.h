/* objective_mask.h: masked tokens (Devlin et al. 2019): which tokens of a sequence a network must
 * recover, and the loss of what it gives for them. */
#ifndef TRAIN_OBJECTIVE_MASK_H
#define TRAIN_OBJECTIVE_MASK_H
#include "base/rng.h"
#include "text/sequence.h"

/* How sequences are masked. */
struct masking {
    int64_t tokens, vocabulary;
    int front, back; /* tokens that begin and end a sequence, which are never masked */
    int32_t mask_id; /* of [MASK] */
    int64_t places;  /* at most, in a sequence */
};
/* An error if the tokenizer has no token for it. */
bool masking_of(const struct sequence *sequence, struct masking *out, struct err *err);

/* 15 % of the tokens of a text, at least one, are drawn: 80 % of them become [MASK], 10 % any token
 * of the vocabulary, and 10 % stay. ids [tokens] is changed; labels [places]: what they were,
 * LOSS_IGNORE where there is none; where [places, tokens]: 1 at the place of each, else 0. */
void masking_draw(const struct masking *masking, struct rng rng, const float *seen, float *ids,
                  int32_t *labels, float *where);

/* The mean cross-entropy of the masked tokens of one sequence: logits [places, vocabulary]. Its
 * gradient, divided by `divisor`, is written unless it is NULL. *right, *count: of these tokens,
 * how many have the highest logit; how many there are. */
bool masking_loss(const struct masking *masking, const float *logits, const int32_t *labels,
                  double divisor, double *loss, float *gradient, struct err *err);
void masking_count(const struct masking *masking, const float *logits, const int32_t *labels,
                   int64_t *right, int64_t *count);
#endif
