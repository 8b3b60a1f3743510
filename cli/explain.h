/* explain.h: what the files of the command explain share. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H
#include "cli/action.h"
#include "cli/cluster.h"
#include "explain/concept_study.h"
#include "explain/map.h"
#include "net/model/classifier.h"

struct explain_args {
    struct common_options common;
    const char *output, *model, *network, *weights, *layers, *class_name, *cache;
    int64_t init_seed, classes, seed, batch, group;
    int scores;
    bool any_stain, overwrite, json;
    struct cluster_options cluster;
    /* map */
    const char *methods, *stain_template, *inside;
    int64_t top, lime_samples, lime_segments, smooth_samples, ig_steps, occlusion_px,
        occlusion_stride_px, belief_steps, belief_orders, belief_subjects;
    int pick, stitch;
    double min_score, hot, smooth_noise;
    /* concepts */
    const char *concepts, *table, *nuclei, *patient;
    int64_t folds, permutations, most_patches;
    int pool, fit, centre;
    double ridge, slide_mpp;
};

extern const struct command cmd_explain;

/* The model of the options, for model_open_classifier. Points into them. */
bool explain_source(const struct explain_args *given, struct model_source *out, struct err *err);

action_fn explain_map, explain_concepts, explain_words;

/* --- on a cluster (explain_tasks.c) --- */

/* What tasks are listed for. */
struct explain_job {
    const struct explain_args *given;
    const char *action;
    char *const *operands; /* after the action */
    int n_operands;
};
/* Hands the tasks of an action to the scheduler of the options. */
bool explain_submit(struct app *app, const struct explain_job *job, struct err *err);

/* The model, the subjects and the open run of `explain map`; its parts point at each other, so it
 * stays where it is. Close with map_session_close, also after a failure. */
struct map_session {
    struct model_source source;
    struct model *model;
    char *name;
    struct map_request request;
    struct subject_request wanted;
    struct subjects subjects;
    struct map_run *run;
};
bool map_session_open(const struct explain_args *given, char *const *operands, int n_operands,
                      const struct ctx *ctx, struct map_session *out, struct err *err);
void map_session_close(struct map_session *session); /* also fine on a zeroed struct */
/* When all subjects are made: redrawn weights, explain.json, the page; prints the table. */
bool map_session_finish(const struct map_session *session, const struct explain_args *given,
                        const struct ctx *ctx, FILE *out, struct err *err);

/* The same for `explain concepts`; the command line is for its record. */
struct concept_session {
    struct model_source source;
    struct model *model;
    char *name;
    struct concept_request request;
    struct concept_study study;
};
bool concept_session_open(const struct explain_args *given, char *const *operands, int n_operands,
                          int argc, char *const *argv, const struct ctx *ctx,
                          struct concept_session *out, struct err *err);
void concept_session_close(struct concept_session *session); /* also fine on a zeroed struct */
/* The results in the folder, as a table or as JSON. */
bool concept_session_print(const struct explain_args *given, FILE *out, struct err *err);
#endif
