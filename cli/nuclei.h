/* nuclei.h: what cmd_nuclei.c and nuclei_tasks.c share. */
#ifndef CLI_NUCLEI_H
#define CLI_NUCLEI_H
#include "cli/cluster.h"
#include "nuclei/learnt.h"
#include "nuclei/nuclei_cohort.h"

struct nuclei_args {
    struct common_options common;
    struct cluster_options cluster;
    const char *output, *cache, *tissue, *omit, *labels, *truth, *settings, *model;
    int method;
    bool icc, no_label_images, overwrite, json;
    double mpp, slide_mpp;
    int64_t tile, group;
};

/* Prints each slide's nuclei as it is made, and at the end the agreement with the truth. */
struct nuclei_printer {
    FILE *out;
    bool as_json, truth;
    int64_t printed;
    struct json_out json; /* opened with the first slide */
};
void nuclei_print_slide(void *arg, const struct nuclei_row *row);
void nuclei_print_end(struct nuclei_printer *printer, const struct nuclei_agreement *all);

/* The options of a request; slides, folder and command line are left to the caller. *net: the
 * network that finds nuclei, the caller's; NULL: none. */
bool nuclei_args_request(const struct nuclei_args *given, const struct ctx *ctx,
                         struct nuclei_request *out, struct nuclei_net **net, struct err *err);

extern const struct command cmd_nuclei;
extern const struct task_kind nuclei_tasks;
#endif
