/* latent.h: one half of a trained autoencoder (net/zoo/autoencoder.c), as it runs on batches:
 * images to maps, or maps to images. Used by one thread; runs on `threads`. */
#ifndef DIFFUSION_LATENT_H
#define DIFFUSION_LATENT_H
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

struct latent {
    struct graph *graph;
    struct plan *plan;
    int64_t batch;
    int64_t channels, side; /* of a map */
    int64_t image_floats, map_floats;
};

struct latent_request {
    const char *network; /* "autoencoder_4" */
    const char *weights; /* safetensors */
    enum zoo_part part;  /* ZOO_ENCODER or ZOO_DECODER */
    int64_t batch, side_px;
    int threads;
};

/* Close with latent_close, also after a failure. */
bool latent_open(const struct latent_request *request, struct latent *out, struct err *err);
void latent_close(struct latent *latent); /* also fine on a zeroed struct */

/* in [rows, ..], rows <= batch -> [rows, ..], valid until the next run; NULL with an error. */
const float *latent_run(struct latent *latent, int64_t rows, const float *in, struct err *err);
#endif
