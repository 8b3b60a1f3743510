/* objective_mask.c: tokens that are hidden from a network are recovered by it (objective.h): learnt
 * from texts alone, so that a classifier can start from the encoder. The loss of a text is the mean
 * over its masked tokens, so it does not depend on the batch. A prediction is how many of them were
 * right, and how many there were. */
#include "train/objective_mask.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "train/loss.h"
#include "train/network.h"
#include "train/objective_texts.h"

static const double masked_share = 0.15, hidden_share = 0.8, other_share = 0.1;

enum { ACCURACY, N_MEASURES };
static const struct measure mask_measures[N_MEASURES] = {
    [ACCURACY] = { "accuracy", "masked accuracy", true },
};
static const char *const mask_plots[] = { "accuracy", NULL };
enum { RIGHT, COUNT, N_VALUES }; /* of a prediction */

/* --- masking --- */

static int64_t places_of(int64_t tokens)
{
    int64_t n = (int64_t)lround(masked_share * (double)tokens);
    return n < 1 ? 1 : n;
}

bool masking_of(const struct sequence *sequence, struct masking *out, struct err *err)
{
    const struct tokenizer *tokenizer = sequence->tokenizer;
    static const char *const names[] = { "[MASK]", "<mask>" };
    *out = (struct masking){ .tokens = sequence->tokens,
                             .vocabulary = tokenizer_size(tokenizer),
                             .mask_id = -1 };
    tokenizer_frame(tokenizer, &out->front, &out->back);
    for (int i = 0; i < 2 && out->mask_id < 0; i++)
        out->mask_id = tokenizer_id(tokenizer, names[i]);
    out->places = places_of(out->tokens - out->front - out->back);
    return out->mask_id >= 0 ||
           err_set(err, ERR_USAGE,
                   "data.tokenizer: has neither [MASK] nor <mask>, which objective mask needs");
}

void masking_draw(const struct masking *m, struct rng rng, const float *seen, float *ids,
                  int32_t *labels, float *where)
{
    int64_t length = 0;
    while (length < m->tokens && seen[length] > 0)
        length++;
    int64_t n = length - m->front - m->back, wanted = n > 0 ? places_of(n) : 0;
    memset(where, 0, (size_t)(m->places * m->tokens) * sizeof *where);
    for (int64_t i = 0; i < m->places; i++)
        labels[i] = LOSS_IGNORE;
    for (int64_t i = 0, left = wanted; i < n && left > 0; i++) { /* left of n - i are taken */
        int64_t place = m->front + i, number = wanted - left;
        if (rng_below(&rng, (uint64_t)(n - i)) >= (uint64_t)left)
            continue;
        double how = rng_uniform(&rng);
        int32_t other = (int32_t)rng_below(&rng, (uint64_t)m->vocabulary);
        labels[number] = (int32_t)ids[place];
        where[number * m->tokens + place] = 1;
        if (how < hidden_share)
            ids[place] = (float)m->mask_id;
        else if (how < hidden_share + other_share)
            ids[place] = (float)other;
        left--;
    }
}

static int64_t count_labels(const struct masking *m, const int32_t *labels)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->places; i++)
        n += labels[i] != LOSS_IGNORE;
    return n;
}

bool masking_loss(const struct masking *m, const float *logits, const int32_t *labels,
                  double divisor, double *loss, float *gradient, struct err *err)
{
    int64_t n = count_labels(m, labels);
    struct loss_classes spec = { .count = m->places,
                                 .classes = m->vocabulary,
                                 .places = 1,
                                 .divisor = divisor * (double)(n > 0 ? n : 1) };
    return loss_softmax(&spec, logits, labels, loss, gradient, err);
}

void masking_count(const struct masking *m, const float *logits, const int32_t *labels,
                   int64_t *right, int64_t *count)
{
    *right = 0;
    *count = count_labels(m, labels);
    for (int64_t i = 0; i < *count; i++) {
        const float *row = logits + i * m->vocabulary;
        int64_t best = 0;
        for (int64_t k = 1; k < m->vocabulary; k++)
            best = row[k] > row[best] ? k : best;
        *right += best == labels[i];
    }
}

/* --- the objective --- */

struct mask {
    struct masking masking;
    float *ids;      /* [batch, tokens] */
    float *where;    /* [batch, places, tokens] */
    int32_t *labels; /* [batch, places] */
};

static bool mask_settle(struct train_config *config, struct err *err)
{
    if (config->train.smoothing > 0 || config->data.balance != BALANCE_NONE)
        return err_set(err, ERR_USAGE,
                       "objective mask learns from texts alone: omit train.smoothing and "
                       "data.balance");
    return true;
}

static void mask_free(struct learning *learning)
{
    struct mask *own = learning->own;
    if (own) {
        free(own->ids);
        free(own->where);
        free(own->labels);
    }
    free(own);
    learning->own = NULL;
}

static bool mask_inputs(struct learning *learning, struct err *err)
{
    struct mask *own = learning->own = calloc(1, sizeof *own);
    if (!own)
        return err_memory(err, "the objective");
    if (!masking_of(&learning->dataset->texts->sequence, &own->masking, err))
        return false;
    size_t batch = (size_t)config_micro_batch(learning->config),
           tokens = (size_t)own->masking.tokens, places = (size_t)own->masking.places;
    own->ids = calloc(batch * tokens, sizeof *own->ids);
    own->where = calloc(batch * places * tokens, sizeof *own->where);
    own->labels = calloc(batch * places, sizeof *own->labels);
    return (own->ids && own->where && own->labels) || err_memory(err, "the objective");
}

static bool mask_build(struct learning *learning, struct graph **out, struct err *err)
{
    const struct mask *own = learning->own;
    learning->outputs = N_VALUES;
    return texts_check_start(learning, err) &&
           network_build_mask(learning->config, own->masking.places, own->masking.vocabulary, out,
                              err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

/* In an evaluation the same tokens are masked every time. */
static bool mask_prepare(struct learning *learning, struct batch *batch, bool train, uint64_t epoch,
                         struct err *err)
{
    struct mask *own = learning->own;
    const struct masking *m = &own->masking;
    const int64_t *samples = batch_int64(batch, "sample");
    const int32_t *copies = batch_int32(batch, "copy");
    const float *ids = batch_floats(batch, "tokens"), *seen = batch_floats(batch, "mask");
    int64_t rows = batch_rows(batch);
    (void)err;
    memcpy(own->ids, ids, (size_t)(rows * m->tokens) * sizeof *ids);
    memset(own->where, 0, (size_t)(rows * m->places * m->tokens) * sizeof *own->where);
    for (int64_t i = 0; i < rows * m->places; i++)
        own->labels[i] = LOSS_IGNORE;
    for (int64_t i = 0; i < batch->n; i++) {
        uint64_t time = train ? (epoch + 1) | (uint64_t)copies[i] << 32 : 0;
        struct rng rng = rng_new((uint64_t)learning->config->seed ^ rng_hash("masked tokens"), time,
                                 (uint64_t)samples[i]);
        masking_draw(m, rng, seen + i * m->tokens, own->ids + i * m->tokens,
                     own->labels + i * m->places, own->where + i * m->places * m->tokens);
    }
    batch_put(batch,
              (struct batch_item){ "tokens", BATCH_FLOAT, SHAPE(rows, m->tokens), own->ids });
    batch_put(batch, (struct batch_item){ "places", BATCH_FLOAT, SHAPE(rows, m->places, m->tokens),
                                          own->where });
    batch_put(batch,
              (struct batch_item){ "masked", BATCH_INT32, SHAPE(rows, m->places), own->labels });
    return true;
}

static bool mask_loss(struct learning *learning, const struct comparison *c, double *loss,
                      struct err *err)
{
    const struct masking *m = &((const struct mask *)learning->own)->masking;
    const int32_t *labels = batch_int32(c->batch, "masked");
    int64_t each = m->places * m->vocabulary;
    *loss = 0;
    for (int64_t i = 0; i < batch_rows(c->batch); i++) {
        double one = 0;
        if (!masking_loss(m, c->outputs + i * each, labels + i * m->places, c->divisor, &one,
                          c->gradient ? c->gradient + i * each : NULL, err))
            return false;
        *loss += one;
    }
    return true;
}

static bool mask_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                      struct predictions *to, struct err *err)
{
    const struct masking *m = &((const struct mask *)learning->own)->masking;
    const int32_t *labels = batch_int32(c->batch, "masked");
    const int64_t *samples = batch_int64(c->batch, "sample");
    if (!predictions_grow(to, c->batch->n, err))
        return false;
    for (int64_t i = 0; i < c->batch->n; i++, to->n++) {
        int64_t right, count;
        masking_count(m, c->outputs + i * m->places * m->vocabulary, labels + i * m->places, &right,
                      &count);
        to->values[to->n * N_VALUES + RIGHT] = (float)right;
        to->values[to->n * N_VALUES + COUNT] = (float)count;
        to->truths[to->n] = 0;
        to->samples[to->n] = samples[i];
    }
    to->loss_sum += loss_sum;
    return true;
}

static bool mask_judge(const struct learning *learning, const struct predictions *found,
                       double *values, struct err *err)
{
    double right = 0, count = 0;
    (void)learning, (void)err;
    for (int64_t i = 0; i < found->n; i++) {
        right += (double)found->values[i * N_VALUES + RIGHT];
        count += (double)found->values[i * N_VALUES + COUNT];
    }
    values[ACCURACY] = right / count;
    return true;
}

static bool mask_write(const struct learning *learning, const char *prefix,
                       const struct predictions *found, struct err *err)
{
    (void)learning, (void)prefix, (void)found, (void)err;
    return true;
}

static void mask_describe(const struct learning *learning, struct model_config *card)
{
    (void)learning;
    card->objective = OBJECTIVE_MASK;
}

static const struct objective_feed mask_feeds[] = {
    { "tokens", "input", false }, { "mask", "mask", false }, { "places", "places", false }, { 0 }
};

const struct objective objective_mask = {
    .name = "mask",
    .takes = "tables of texts (CSV)",
    .truth = TRUTH_NONE,
    .feeds = mask_feeds,
    .output = "tokens",
    .measures = mask_measures,
    .n_measures = N_MEASURES,
    .plots = mask_plots,
    .monitor = "loss",
    .mode = PLAN_TRAIN,
    .test = true,
    .settle = mask_settle,
    .inputs = mask_inputs,
    .build = mask_build,
    .prepare = mask_prepare,
    .loss = mask_loss,
    .keep = mask_keep,
    .judge = mask_judge,
    .write = mask_write,
    .describe = mask_describe,
    .accompany = texts_accompany,
    .free = mask_free,
};
