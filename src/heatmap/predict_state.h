/* predict_state.h: what an open prediction holds; private to the predict_*.c files. */
#ifndef HEATMAP_PREDICT_STATE_H
#define HEATMAP_PREDICT_STATE_H
#include "heatmap/ensemble.h"
#include "heatmap/predict.h"
#include "heatmap/source.h"

struct predict {
    const struct predict_options *options;
    const struct slide_list *slides;
    char *folder;
    struct ensemble ensemble;
    struct raster_request raster; /* the resolution that the models see */
    struct stain_fit target;
    char *model_names, *model_hash;
    char *cohort_hash; /* 16 hex digits of the names of the slides */
    char *options_text;
    struct heatmap_check check, raw;
    bool checked; /* these are known */
    int workers;  /* that memory allows */
    struct predict_times times;
};

/* DIR/<slide>, the caller's; NULL if no memory. */
char *predict_folder(const struct predict *predict, size_t slide);

/* Opens a slide at the models' resolution, or refuses it. mask NULL: the tissue is looked for. */
bool predict_source(const struct predict *predict, size_t slide, const char *mask,
                    struct source *out, struct err *err);
/* The mask in the folder of --tissue, the caller's; NULL and true where there is no such option. */
bool predict_given_mask(const struct predict *predict, size_t slide, char **out, struct err *err);

/* Fits the stains of a slide and lets the source normalise them; nothing without --stain. */
bool predict_fit_stain(const struct predict *predict, struct source *source, const struct ctx *ctx,
                       struct stain_fit *out, struct err *err);

/* The difference of a dense run that is not exact: reads it, with the calibration, from check.json;
 * where it is not there, measures it if `measures`. */
bool predict_check(struct predict *predict, bool measures, const struct ctx *ctx, struct err *err);
#endif
