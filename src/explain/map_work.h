/* map_work.h: one subject on its way to its maps; private to the map_*.c files. */
#ifndef EXPLAIN_MAP_WORK_H
#define EXPLAIN_MAP_WORK_H
#include <jansson.h>
#include "base/json.h"
#include "explain/map.h"

#define MAP_PROBES 33

/* Belongs to one thread. Probes are kept for the last size of the input. */
struct map_worker {
    struct explain_settings settings;
    struct probe *probes[MAP_PROBES]; /* by what they are asked for; NULL: not yet */
};

/* Where the network's input is in the image: [left, left + width) x [top, top + height) px. */
struct map_frame {
    int64_t left, top, width, height;
};

/* An image as the network sees it. */
struct map_view {
    struct image image; /* of the subject */
    struct image sized; /* after the sizings; its pixels are those of the image if there are none */
    struct map_frame frame;
    float *input;
    double *scores; /* [classes] */
    struct explain_view view;
};
/* Reads a subject and scores it. *out is the caller's; free with map_view_free, also after a
 * failure. */
bool map_view_make(const struct map_run *run, struct map_worker *worker,
                   const struct subject *subject, struct map_view *out, struct err *err);
/* The same of pixels that were read; takes the image. ERR_MISSING: all are of one colour. */
bool map_view_of(const struct map_run *run, struct map_worker *worker, struct image *image,
                 const char *name, struct map_view *out, struct err *err);
void map_view_free(struct map_view *view); /* also fine on a zeroed struct */

/* The probe that a column needs, made if it is not there; explainer NULL: for scores. */
struct probe *map_probe(const struct map_run *run, struct map_worker *worker,
                        const struct explainer *explainer, struct err *err);
/* Frees the probes that neither this column nor scores need: only what is in use takes memory. */
void map_make_room(const struct map_run *run, struct map_worker *worker, int column);
/* Frees all probes and their weights, before something else needs the memory. */
bool map_forget(struct map_run *run, struct err *err);
bool map_explain(const struct map_run *run, struct map_worker *worker, int column,
                 const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                 struct err *err);

/* The map for viewing, [image.height, image.width]: resized, normalised, NaN outside of the frame.
 * The caller's; NULL if no memory. */
float *map_for_viewing(const struct attribution *raw, const struct explainer *explainer,
                       const struct map_frame *frame, int64_t width, int64_t height);

/* What was measured of a subject. */
struct map_numbers {
    double low[MAP_MOST_COLUMNS], high[MAP_MOST_COLUMNS]; /* of the raw maps */
    int64_t height[MAP_MOST_COLUMNS], width[MAP_MOST_COLUMNS];
    struct belief_order orders[MAP_MOST_COLUMNS];
    struct belief_inside inside[MAP_MOST_COLUMNS]; /* NaN: not measured */
    double *agreement;                             /* [columns, columns] */
};

/* maps [columns], of the input's size, before normalisation; nothing is outlined: NaN. */
bool map_measure_inside(const struct map_run *run, const struct subject *subject,
                        const struct map_view *view, float *const *maps, const struct ctx *ctx,
                        struct map_numbers *numbers, struct err *err);

/* Files of a subject: paths are the caller's; NULL if no memory. */
char *map_path(const struct map_run *run, const struct subject *subject, const char *file);
bool map_write_column(const struct map_run *run, const struct subject *subject, int column,
                      const struct map_view *view, const struct attribution *raw, struct err *err);
bool map_write_subject(const struct map_run *run, const struct subject *subject,
                       const struct map_view *view, const struct map_numbers *numbers,
                       struct err *err);
bool map_write_failure(const struct map_run *run, const struct subject *subject,
                       const struct err *why, struct err *err);

/* subject.json; NULL if it is not there. The caller's: json_decref. */
json_t *map_read_subject(const struct map_run *run, const struct subject *subject);
/* redrawn.json of this run; NULL if it is not there. The caller's. */
json_t *map_read_redrawn(const struct map_run *run);

/* A value of jansson's, whatever it is. */
void map_put_value(struct json_out *json, const char *key, const json_t *value);

/* index.html of the subjects [n], in the order of the list. */
bool map_write_page(const struct map_run *run, json_t *const *subjects, int64_t n,
                    const struct map_summary *summary, struct err *err);
/* The outlines of the hottest areas. */
bool map_write_outlines(const struct map_run *run, json_t *const *subjects, int64_t n,
                        struct err *err);
#endif
