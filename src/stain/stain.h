/* stain.h: stain estimation and normalisation. A slide is fitted once on sampled tissue pixels;
 * the fitted transform is then applied to any of its pixels, from any number of threads. */
#ifndef STAIN_STAIN_H
#define STAIN_STAIN_H
#include "base/image.h"

enum stain_method { STAIN_NONE, STAIN_REINHARD, STAIN_MACENKO, STAIN_VAHADANE };
extern const char *const stain_method_names[]; /* NULL-terminated, in the order of the enum */

/* The stain of an image as a method describes it. Optical density is -ln(max(v, 1) / 255). */
struct stain_fit {
    enum stain_method method;
    double matrix[2][3];         /* Macenko, Vahadane: rows H, E in optical density, unit length */
    double concentration_p99[2]; /* 99th percentile of each stain's concentration */
    double lab_mean[3], lab_std[3]; /* Reinhard */
};

/* Fits RGB pixels [n, 3]. Stain vectors, means and deviations come from the pixels darker than
 * glass (L < 80); the percentiles are over all n, so pass tissue pixels. The result depends on the
 * pixels and, in the last digits, on their order. Fails with a clear message if there is too little
 * tissue. For a million pixels Macenko and Reinhard take 70 ms, Vahadane a second. Thread-safe. */
bool stain_fit(enum stain_method method, const uint8_t *rgb, int64_t n, struct stain_fit *out,
               struct err *err);

struct stain_transform; /* source fit -> target fit, with its tables */
bool stain_transform_new(const struct stain_fit *source, const struct stain_fit *target,
                         struct stain_transform **out, struct err *err);
void stain_transform_free(struct stain_transform *transform);
/* In place, 10 ms for a million pixels. Thread-safe, no allocation. A pixel's result depends on
 * that pixel alone. Glass stays white: Reinhard moves pixels with L <= 80 fully, those with L >= 90
 * not at all, and those between by a fraction that falls smoothly; the others map density 0 to
 * density 0. Macenko and Vahadane keep the part of a colour that two stains explain; the rest is
 * lost, even if target and source are the same. */
void stain_apply(const struct stain_transform *transform, uint8_t *rgb, int64_t n_px);

/* The built-in template used by default; see docs/tissue.md. */
struct stain_fit stain_default_target(enum stain_method method);
#endif
