/* set.h: the samples of an audit, in memory: members of the training and others. */
#ifndef AUDIT_SET_H
#define AUDIT_SET_H
#include "base/ctx.h"
#include "base/err.h"
#include "base/image.h"
#include "net/model/model_config.h"

/* Either the lists of a training with privacy.hold_out, members.csv and others.csv in `folder`, or
 * paths of members and of others: folders, tar files, stores. */
struct set_request {
    const char *folder; /* of the model; used if there are no paths */
    char *const *members, *const *others;
    size_t n_members, n_others;
    bool coins;   /* members of the paths were drawn by fair coins */
    int64_t most; /* samples of both kinds together; more are drawn at random */
    uint64_t seed;
};

struct audit_set {
    int64_t n, n_members;
    struct image *images; /* [n], ready for the model but for sizes and normalisation */
    bool *member;         /* [n] */
    int32_t *label;       /* [n]; a class of the model */
    char **names;         /* [n] */
    bool coins;           /* every one was put in or kept out by a fair coin of its own */
    bool same_patients;   /* some patient has members and others */
    int64_t unlabelled;   /* samples that have no class and were left out */
};

/* The model says how patches are prepared and what the classes are; labels: without a class a
 * sample is left out. *out is the caller's; free with audit_set_free, also after a failure. HDF5:
 * see patch/store.h. */
bool audit_set_open(const struct set_request *request, const struct model_config *model,
                    bool labels, const struct ctx *ctx, struct audit_set *out, struct err *err);
void audit_set_free(struct audit_set *set); /* also fine on a zeroed struct */

/* trained_on [n]: which samples of the set the model in another folder was trained on, by its
 * members.csv; *listed: whether there is one. */
bool audit_set_trained_on(const struct audit_set *set, const char *folder, bool *trained_on,
                          bool *listed, struct err *err);
#endif
