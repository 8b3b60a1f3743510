/* explainer.h: the table of methods that say which pixels a score comes from. A method is one file
 * explain_<name>.c that defines one struct explainer; explainers.c lists them. docs/explain.md has
 * their definitions. */
#ifndef EXPLAIN_EXPLAINER_H
#define EXPLAIN_EXPLAINER_H
#include "base/ctx.h"
#include "base/image.h"
#include "explain/probe.h"

/* An image as the network sees it. */
struct explain_view {
    const struct image *image; /* RGB after stain normalisation and all sizings: height x width */
    const float *input;        /* [3, height, width]: the same, normalised */
    int64_t class_index;
    double score; /* of the class, for this image */
    uint64_t key; /* of random numbers: depends on the image's name and the seed alone */
};

/* What a run has in common. */
struct explain_settings {
    const struct model *model;
    int64_t height, width; /* of the network's input */
    int64_t batch;         /* images that run together */
    int threads;
    int64_t lime_samples, lime_segments;       /* 1000; about 50 superpixels */
    int64_t smooth_samples, ig_steps;          /* 25, 50 */
    double smooth_noise;                       /* of the range of the input, 0.15 */
    int64_t occlusion_px, occlusion_stride_px; /* 0: an eighth of the side, half of it */
};
struct explain_settings explain_defaults(void);

/* values [height, width], row-major, before any normalisation. */
struct attribution {
    int64_t height, width;
    float *values;
};

enum explainer_maps {
    MAPS_LAYER, /* one map for each layer, of its size */
    MAPS_INPUT, /* one map whatever the layers: of the input's size, or of the grid of tokens */
};

struct explainer {
    const char *name;  /* as in --method */
    const char *title; /* "Grad-CAM++" */
    const char *help;  /* one line, no full stop */
    enum explainer_maps maps;
    bool positive;       /* shown from 0 to 1: what is below 0 (CAM, HiResCAM) only in the raw map.
                          * Else signed: evidence against the class is negative */
    bool pixelwise;      /* differs from pixel to pixel: smoothed before people look at it */
    bool input_gradient; /* the probe needs it */
    bool forward_only;   /* the probe needs no gradients */
    bool attention;      /* the probe needs it */
    /* Whether it can be used on this network and layer; NULL: always. MAPS_INPUT: layer is -1. */
    bool (*check)(const struct explain_settings *settings, const struct probe *probe, int layer,
                  struct err *err);
    /* The map of one view, for methods that fill the threads with it; out->values is the caller's
     * to free. The probe is one of settings->model at this size and batch, with what the flags
     * above ask for. NULL: explain_many. See explainer_run. */
    bool (*explain)(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err);
    /* The maps of n <= settings->batch views at once, with the same bytes as one by one; NULL:
     * explain. */
    bool (*explain_many)(const struct explain_settings *settings, struct probe *probe, int layer,
                         const struct explain_view *views, int64_t n, const struct ctx *ctx,
                         struct attribution *out, struct err *err);
};

extern const struct explainer *const explainers[]; /* NULL-terminated */
/* By its name; the error lists all names. */
const struct explainer *explainer_find(const char *name, struct err *err);
/* The maps of any number of views: out [n], the caller's to free (attribution_free), none after a
 * failure. */
bool explainer_run(const struct explainer *explainer, const struct explain_settings *settings,
                   struct probe *probe, int layer, const struct explain_view *views, int64_t n,
                   const struct ctx *ctx, struct attribution *out, struct err *err);

/* All zero; the caller's. */
bool attribution_new(int64_t height, int64_t width, struct attribution *out, struct err *err);
void attribution_free(struct attribution *map); /* also fine on a zeroed struct */

/* To another size: bilinear with half-pixel centres, clamped at the borders (PyTorch's interpolate
 * with align_corners=False; widening only, no antialias). out [height, width]. */
void attribution_resize(const struct attribution *map, int64_t height, int64_t width, float *out);
/* In place: positive maps, with what is below 0 set to 0, to (v - min) / (max - min), signed ones
 * to v / max |v|; a constant map becomes 0. NaN stays and does not count. */
void attribution_normalize(float *values, int64_t n, bool positive);
#endif
