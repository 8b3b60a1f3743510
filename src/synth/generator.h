/* generator.h: a trained model that makes patches (objective generate), opened from its folder. */
#ifndef SYNTH_GENERATOR_H
#define SYNTH_GENERATOR_H
#include "diffusion/latent.h"
#include "diffusion/process.h"
#include "net/graph/graph.h"
#include "net/model/model_config.h"

struct generator {
    struct graph *graph; /* with weights, at the batch asked for */
    struct model_config config;
    enum process process;
    int64_t batch, side_px, conditions;
    int64_t floats;        /* that the network makes for an image */
    struct latent decoder; /* that makes images of them; no plan: they are the image */
    struct latent encoder; /* the way back, once it was needed */
    char *latent_weights;  /* file of both */
    int threads;
    double mpp;    /* um/px of what it makes */
    char hash[20]; /* of the weights' file, hexadecimal */
};

/* path: the folder of a training, or its model.safetensors. Errors name the file. Close with
 * generator_close, also after a failure. */
bool generator_open(const char *path, int64_t batch, int threads, struct generator *out,
                    struct err *err);
void generator_close(struct generator *generator); /* also fine on a zeroed struct */

/* A class or centre by its name or number from 0; an error lists what there is. */
bool generator_class(const struct generator *generator, const char *word, int32_t *out,
                     struct err *err);
bool generator_centre(const struct generator *generator, const char *word, int32_t *out,
                      struct err *err);
/* What the network is told: out [conditions]; -1: nothing of that. */
void generator_condition(const struct generator *generator, int32_t class_number, int32_t centre,
                         float *out);

/* Normalised images [n, 3, side, side], n <= batch -> what the network makes of such, [n, floats].
 */
bool generator_learnt(struct generator *generator, int64_t n, const float *images, float *out,
                      struct err *err);

/* What the network made of n <= batch images, [n, floats] -> RGB [n, side, side, 3]; beyond the
 * range of bytes clipped. */
bool generator_pixels(struct generator *generator, int64_t n, const float *made, uint8_t *rgb,
                      struct err *err);
#endif
