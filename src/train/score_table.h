/* score_table.h: a table and a model that was trained on such tables -> its scores, as CSV: id,
 * label and score_<class>. What rows are is up to the kind of model: score_texts.h,
 * score_recordings.h. */
#ifndef TRAIN_SCORE_TABLE_H
#define TRAIN_SCORE_TABLE_H
#include <stddef.h>
#include "base/csv.h"
#include "base/ctx.h"
#include "base/err.h"
#include "net/model/model_config.h"

struct score_table_request {
    const char *model;  /* folder of a training, or the weights in it */
    const char *table;  /* CSV with the columns that the training's tables had; labels may lack */
    const char *folder; /* gets scores.csv; made if needed */
    bool overwrite;
};

struct score_table_result {
    int64_t n;                 /* rows */
    int64_t cut;               /* of them longer than the network takes */
    bool windows;              /* which are read in windows, so that nothing is lost */
    int64_t labelled, correct; /* with a label that is a class; whose class has the highest score */
};

/* Columns of a table; -1: absent. */
struct score_columns {
    int sample, label, id;
};
/* Their names; label and id may be NULL. what: "texts". */
struct score_names {
    const char *what, *sample, *label, *id;
};
bool score_columns_find(const struct csv *csv, const struct score_names *names,
                        struct score_columns *out, struct err *err);

/* A kind of model whose state, of `bytes` zeros, these functions get. */
struct score_kind {
    size_t bytes;
    int64_t batch; /* rows at a time, at most */
    bool (*open)(void *state, const char *model, const struct ctx *ctx, struct err *err);
    void (*close)(void *state); /* also after a failure, or without open */
    const struct model_config *(*config)(const void *state);
    struct score_names (*names)(const void *state);
    /* Logits [n, classes] of rows first .. first + n - 1; counts in *result what is cut. They are
     * the state's; NULL: failed. */
    const float *(*run)(void *state, const struct csv *csv, int column, size_t first, int64_t n,
                        struct score_table_result *result, struct err *err);
};
bool score_table_run(const struct score_kind *kind, const struct score_table_request *request,
                     const struct ctx *ctx, struct score_table_result *out, struct err *err);
#endif
