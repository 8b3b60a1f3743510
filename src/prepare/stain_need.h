/* stain_need.h: what a model expects of the stains of its patches, as its config.json says it, and
 * whether a store of patches meets it. */
#ifndef PREPARE_STAIN_NEED_H
#define PREPARE_STAIN_NEED_H
#include "net/model/model_config.h"
#include "patch/store.h"
#include "stain/stain.h"

struct stain_need {
    bool known;              /* the model says it; else anything may be right */
    bool per_patch;          /* fitted on each patch; else on the tissue of its slide */
    struct stain_fit target; /* what they are normalised to; method STAIN_NONE: left as they are */
};

/* Errors: a method that is not known here. */
bool stain_need_of(const struct model_config *config, struct stain_need *out, struct err *err);
void stain_need_put(const struct stain_need *need, struct model_config *config);

/* What the image `template` looks like to the method, or with NULL or "" the built-in target. */
bool stain_need_target(enum stain_method method, const char *template, struct stain_fit *out,
                       struct err *err);
/* Do both normalise to the same? */
bool stain_same_target(const struct stain_fit *a, const struct stain_fit *b);
/* What the patches of a store were normalised to; STAIN_NONE where it does not say. */
struct stain_fit stain_of_store(const struct store_facts *facts);

/* Are patches that were normalised to `have` what the model expects? model and path name both in
 * the message; `remedy` ends it. */
bool stain_need_check(const struct stain_need *need, const struct stain_fit *have,
                      const char *model, const char *path, const char *remedy, struct err *err);

/* Normalises the stains of a patch where each is fitted by itself; a patch with too little tissue
 * for a fit stays as it is. Thread-safe. */
bool stain_need_patch(const struct stain_need *need, struct image *patch, struct err *err);
#endif
