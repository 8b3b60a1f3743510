/* make.h: patches from a generator to files: a patch store or PNGs, and a picture of the first of
 * them. Every file says that it is synthetic, and from which model, seed and number it comes. Image
 * i depends on model, seed, its class and i alone. Over ranks, each makes some; the first writes.
 */
#ifndef SYNTH_MAKE_H
#define SYNTH_MAKE_H
#include "base/ctx.h"
#include "diffusion/sampler.h"
#include "dist/ranks.h"
#include "synth/generator.h"

enum make_format { MAKE_STORE, MAKE_PNG };

struct make_request {
    const char *folder;
    const char *version;          /* of the program: "microtome 0.1.0" */
    int32_t class_number, centre; /* -1: of each class (centre) the same number, in turn; or none */
    int64_t first, n;
    struct sampler_options sampler; /* process is the generator's */
    enum make_format format;
    bool overwrite;
};

/* The folder gets patches.h5 or NAME.png, grid.png and samples.json. */
bool make_samples(struct generator *generator, const struct make_request *request,
                  struct ranks *ranks, const struct ctx *ctx, struct err *err);
#endif
