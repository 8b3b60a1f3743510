/* sweep.h: trainings of all combinations of some config keys' values, each in a folder below DIR
 * that is just what `train --set KEY=VALUE ... -o DIR/<name>` gives, plus result.json. DIR has
 *
 *   sweep.csv sweep.json    one row per combination: values, state, validation and test, seconds
 *   sweep.svg sweep.png     the validation measure by combination
 *   best                    a link to the folder of the best combination
 *
 * rewritten whenever a combination ends. The best is chosen by validation alone, by the measure
 * that train.monitor names; test data never count. Not thread-safe. */
#ifndef SWEEP_SWEEP_H
#define SWEEP_SWEEP_H
#include <jansson.h>
#include "base/ctx.h"
#include "base/json.h"
#include "train/start.h"

#define SWEEP_MOST 10000 /* combinations */
#define SWEEP_MOST_AXES 16
#define SWEEP_RESULT "result.json" /* in a combination's folder, once it is complete */

/* A key and its values. */
struct sweep_axis {
    const struct config_key *key;
    char name[64];   /* the shortest that is unambiguous: "lr", "epochs", "network.name" */
    char **values;   /* [n], as typed: YAML */
    double *numbers; /* [n]; NULL if the key is not a number */
    size_t n;        /* at least 1 */
};

enum combination_state {
    COMBINATION_LEFT,
    COMBINATION_RUNNING,
    COMBINATION_STOPPED, /* and saved */
    COMBINATION_DONE,
    COMBINATION_FAILED,
};
extern const char *const combination_state_names[]; /* NULL-terminated, for the enum */

struct combination {
    char *name; /* of its folder: "lr=0.01,network.name=resnet50" */
    enum combination_state state;
    char *error;    /* why it failed; NULL */
    json_t *result; /* of its result.json: best_epoch, epochs, seconds, val {}, test {}; NULL */
};

struct sweep {
    char *folder; /* DIR */
    struct sweep_axis axes[SWEEP_MOST_AXES];
    size_t n_axes;
    struct combination *items; /* [n]: the last axis changes fastest */
    size_t n;
    const char *measure; /* of "val" in a result, by which combinations are compared: "auc" */
    bool lowest;         /* the lowest is the best; else the highest */
};

/* texts [n]: "KEY=VALUE,VALUE,..."; commas within brackets or quotes are part of a value. KEY is a
 * key of the config, its last part if that is unambiguous, or lr. Every value is checked against
 * the table of keys. *out is the caller's; free with sweep_free, also after a failure. */
bool sweep_new(const char *const *texts, size_t n, const char *folder, struct sweep *out,
               struct err *err);
void sweep_free(struct sweep *sweep); /* also fine on a zeroed struct */

/* Which value of axis a combination i has. */
size_t sweep_value(const struct sweep *sweep, size_t i, size_t a);
/* Combination i as settings, "schedule.learning_rate=0.01" [n_axes]: texts and array are the
 * caller's; free with sweep_settings_free. NULL if no memory. */
char **sweep_settings(const struct sweep *sweep, size_t i);
void sweep_settings_free(char **settings, size_t n);
/* DIR/<name>, the caller's; NULL if no memory. */
char *sweep_folder(const struct sweep *sweep, size_t i);

/* Sets `measure`: what chooses the best epoch of a training. start: without a combination's
 * settings; its folder is not used. */
bool sweep_choose_measure(struct sweep *sweep, const struct train_start *start, struct err *err);
/* The same, then reads the config of every combination as a training would, builds its network, and
 * checks that those already complete were trained with it. Takes about a millisecond per
 * combination. */
bool sweep_check(struct sweep *sweep, const struct train_start *start, const struct ctx *ctx,
                 struct err *err);

/* --- results --- */

/* Writes the result of a training in `folder`, from its metrics.json, to `path`. */
bool sweep_record(const char *folder, const char *path, struct err *err);
/* Reads result.json of all combinations that have one; they are then done. If none has the measure
 * (validation data of one class have no AUC), they are compared by the loss. */
bool sweep_read(struct sweep *sweep, struct err *err);
/* Removes result.json of all combinations: none is done. */
bool sweep_clear(const struct sweep *sweep, struct err *err);
/* The validation measure of a combination; NaN if there is none. */
double sweep_score(const struct sweep *sweep, size_t i);
/* The best of those done; the first of equals; sweep->n if none has a validation measure. */
size_t sweep_best(const struct sweep *sweep);

/* Writes sweep.csv, sweep.json, the plot and the link `best`. */
bool sweep_write(const struct sweep *sweep, struct err *err);
/* What sweep.json contains, as members of an open object. */
void sweep_put(const struct sweep *sweep, struct json_out *json);
/* sweep.svg and sweep.png; removed if there is nothing to draw. */
bool sweep_plot(const struct sweep *sweep, struct err *err);

/* Trains combination i in its folder; from its last checkpoint if there is one. */
typedef bool (*sweep_train_fn)(void *arg, const struct sweep *sweep, size_t i, struct err *err);
/* Trains what is left, one after another. A combination that fails is recorded and the others
 * continue; the result is then an error that names it. Stopped, it is ERR_REQUEUE. */
bool sweep_run(struct sweep *sweep, sweep_train_fn train, void *arg, const struct ctx *ctx,
               struct err *err);
#endif
