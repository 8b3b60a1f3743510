/* target.h: a model that is attacked: what it says of images that may have been in its training. A
 * kind of model is an entry of a table, in a file of its own. */
#ifndef AUDIT_TARGET_H
#define AUDIT_TARGET_H
#include "audit/set.h"
#include "audit/signals.h"

#define TARGET_SIGNALS 4

struct target {
    const struct audited_kind *kind;
    const struct model_config *config; /* in state */
    void *state;
};

struct audited_kind {
    const char *name; /* "classifier" */
    bool labels;      /* needs the class of every sample */
    bool likelihood;  /* its first loss is -log of a chance */
    int n_signals;    /* attacks that need nothing but the model; the first is its plain loss */
    struct target_signal {
        const char *name, *what; /* "SecMI", and in a few words what is measured */
    } signals[TARGET_SIGNALS];
    /* Opens the model; fills config and state, also if it fails. untrained: its weights are
     * replaced by random ones of the seed. */
    bool (*open)(struct target *target, const char *path, bool untrained, uint64_t seed,
                 const struct ctx *ctx, struct err *err);
    void (*close)(struct target *target); /* frees state, which may be NULL or incomplete */
    /* Fills `out` [n_signals], each of set->n. The same for any number of threads. */
    bool (*measure)(struct target *target, const struct audit_set *set, const struct ctx *ctx,
                    struct signal *out, struct err *err);
    /* Makes images [n], the caller's. NULL: the model makes none. */
    bool (*make)(struct target *target, int64_t n, uint64_t seed, const struct ctx *ctx,
                 struct image *out, struct err *err);
};

/* path: a trained model, its folder or file. Close with target_close, also after a failure. */
bool target_open(const char *path, const struct ctx *ctx, struct target *out, struct err *err);
/* The same network with random weights: it cannot know anybody. */
bool target_untrained(const char *path, uint64_t seed, const struct ctx *ctx, struct target *out,
                      struct err *err);
void target_close(struct target *target); /* also fine on a zeroed struct */

/* measure, with memory for the signals: out [n_signals], each to be freed with signal_free. */
bool target_measure(struct target *target, const struct audit_set *set, const struct ctx *ctx,
                    struct signal *out, struct err *err);
#endif
