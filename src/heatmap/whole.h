/* whole.h: a network that takes whole slides -> the score of a slide, and where on it the score
 * comes from: a map of its classes, made in the same pass over the slide's tiles. Private to this
 * folder. */
#ifndef HEATMAP_WHOLE_H
#define HEATMAP_WHOLE_H
#include "base/ctx.h"
#include "heatmap/heatmap.h"
#include "net/graph/transform.h"
#include "net/model/classifier.h"
#include "net/plan/plan.h"
#include "prepare/slide_image.h"

/* Of cell i and class c, with the map A [channels] that is pooled and the weights w, b of the
 * linear layer: */
enum whole_map {
    WHOLE_AUTO, /* CAM for a mean or for classes in each cell, else Grad-CAM */
    WHOLE_CAM, /* the scores of the logits w_c A_i + b_c; the mean of these logits is the slide's */
    WHOLE_GRADCAM, /* tanh(v / 2), v = max(0, w_c A_i): Grad-CAM times the number of cells, since
                      the gradients of the pooled map sum up to w_c in each channel (of attention:
                      as long as its weights do not change), brought to [0, 1) */
};
extern const char *const whole_map_names[]; /* NULL-terminated, in the order of the enum */

struct whole_net;

/* Rejects a network that has no such map, or not this one. The model must outlive *out, which is
 * the caller's; close with whole_close. */
bool whole_open(const struct model *model, enum whole_map map, struct whole_net **out,
                struct err *err);
void whole_close(struct whole_net *net);                  /* NULL-safe */
enum whole_map whole_map_of(const struct whole_net *net); /* never WHOLE_AUTO */

struct whole_settings {
    int64_t memory_bytes; /* of the plan; decides how the slide is cut into tiles */
    int64_t other_bytes;  /* that the process takes besides; for messages */
    const char *spill;    /* folder for what does not fit; nothing of one pass does not */
    int64_t tile_px;      /* 0: as large as that allows */
    int threads;
    bool direct, fast;
};

struct whole_output {
    float *logits; /* [classes], of the slide */
    float *map;    /* [classes, height, width]: logits of the cells */
    int64_t height, width;
    double first[2], step[2]; /* px of the image: centre of cell 0, and distance, in y and x */
    struct plan_streamed streamed;
};
void whole_output_free(struct whole_output *result); /* also fine on a zeroed struct */

/* One pass. Stops with ctx. */
bool whole_pass(const struct whole_net *net, struct slide_image *image,
                const struct whole_settings *settings, const struct ctx *ctx,
                struct whole_output *out, struct err *err);

/* The value of the map at (x, y) px of the image, between its cells linear: scores [classes], or a
 * number. logits [classes] and doubles [classes] are scratch. */
bool whole_at(const struct whole_net *net, const struct whole_output *result, double x, double y,
              float *logits, double *scores, struct err *err);
#endif
