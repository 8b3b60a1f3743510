/* predict_state.h: the state of an open prediction; private to the predict_*.c files. */
#ifndef HEATMAP_PREDICT_STATE_H
#define HEATMAP_PREDICT_STATE_H
#include "base/identity.h"
#include "heatmap/ensemble.h"
#include "heatmap/predict.h"
#include "heatmap/specimen.h"
#include "prepare/stain_need.h"

struct predict {
    const struct predict_options *options;
    const struct exporter *exports[16]; /* of the options, as far as the models allow */
    const struct slide_list *slides;
    char *folder;
    struct ensemble ensemble;
    struct whole_net *whole;      /* slides are taken whole; NULL: window by window */
    int64_t whole_bytes;          /* of its plan */
    int64_t other_bytes;          /* all but that */
    int64_t tiles_bytes;          /* of decoded tiles */
    enum tissue_method method;    /* --method, or for whole slides that of the training */
    struct raster_request raster; /* the resolution of the models' input, or a level */
    double expected_mpp;          /* --mpp, or what the models were made for; 0: unknown */
    struct stain_need need;       /* what the models say about stains */
    struct stain_fit target;      /* what stains are normalised to; its method is that of the run */
    const char *template_name;    /* of the target: "given", "model" or "built-in" */
    char *model_names, *model_hash;
    char *cohort_hash; /* 16 hex digits of the names of the slides */
    char *outputs;     /* " scores=.." if they are not logits, else "" */
    char *options_text;
    struct heatmap_check check, raw;
    bool checked;                   /* these are known */
    char check_inputs[INPUTS_ROOM]; /* what they were measured on */
    bool *prepared;                 /* [slides]: what exists of it has been checked */
    int workers;                    /* that memory allows */
    struct predict_times times;
};

/* DIR/<slide>, the caller's; NULL if no memory. */
char *predict_folder(const struct predict *predict, size_t slide);

/* The files that a heatmap of the slide would be made from, as they are now. */
bool predict_inputs(const struct predict *predict, size_t slide, char out[INPUTS_ROOM],
                    struct err *err);
/* Would `file`, a heatmap or plan.json of the slide, be made the same way today? Sets slide->inputs
 * if they are not known yet. */
bool predict_same(const struct predict *predict, struct predict_slide *slide, const char *file,
                  const struct heatmap_info *made, struct err *err);
/* Fails where a heatmap or plan.json of the slide was made with other options or from other files,
 * and says which. */
bool predict_refuse(const struct predict *predict, size_t slide, struct err *err);
/* Are the files those that the partition was made from? Checked again after pixels were read. */
bool predict_hold(const struct predict *predict, const struct predict_slide *slide,
                  struct err *err);

/* Opens a slide at the models' resolution, or rejects it. mask NULL: finds the tissue, for
 * which ctx is used. */
bool predict_specimen(const struct predict *predict, size_t slide, const char *mask,
                      const struct ctx *ctx, struct specimen *out, struct err *err);
/* The mask in the folder of --tissue, the caller's; NULL and true without that option. */
bool predict_given_mask(const struct predict *predict, size_t slide, char **out, struct err *err);

/* predict_whole.c: networks that take whole slides. */
/* Opens `whole` if that is how the model is to be run, and sets the method. */
bool predict_choose_whole(struct predict *predict, struct err *err);
/* Brings the raster of the slide's specimen to the scale of the image, and says which cells of the
 * heatmap the image covers: in one block. mask: of its tissue. */
bool predict_whole_place(const struct predict *predict, struct predict_slide *slide,
                         const char *mask, const struct ctx *ctx, struct partition_block *out,
                         struct err *err);
/* Scores the slide: its one part, and slide.json. */
bool predict_whole_score(struct predict *predict, struct predict_slide *slide,
                         const struct ctx *ctx, struct err *err);
/* The score for the main class that slide.json has. */
bool predict_whole_read(const struct predict *predict, const char *folder, double *score,
                        struct err *err);
/* What determines the scores, as words of the options; the caller's. */
char *predict_whole_words(const struct predict *predict);
struct slide_access predict_access(const struct predict *predict);

/* Chooses need, target and template_name; rejects what contradicts the models. */
bool predict_choose_stain(struct predict *predict, const struct ctx *ctx, struct err *err);
/* Is a store whose patches were normalised to `stored` what the models expect? */
bool predict_check_store(const struct predict *predict, const char *path,
                         const struct stain_fit *stored, struct err *err);
/* Fits the stains of a slide and lets the specimen normalise them; nothing for a store, or without
 * a method. */
bool predict_fit_stain(const struct predict *predict, struct specimen *specimen,
                       const struct ctx *ctx, struct stain_fit *out, struct err *err);

/* The difference of a dense run that is not exact: reads it, with the calibration, from check.json;
 * if that is missing, measures it if `measures`. */
bool predict_check(struct predict *predict, bool measures, const struct ctx *ctx, struct err *err);
/* A calibration decides scores: fails if the slides that it was fitted to have changed since. */
bool predict_same_check(const struct predict *predict, struct err *err);
/* Removes check.json. */
void predict_forget_check(struct predict *predict);
#endif
