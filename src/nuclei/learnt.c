/* learnt.c: see learnt.h. An image is covered by windows whose middles touch; what is nearer to the
 * edge of a window than MARGIN_PX is not used, unless it is the edge of the image, where windows
 * are filled up with mirrored pixels. */
#include "nuclei/learnt.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "net/graph/transform.h"
#include "net/model/model_run.h"
#include "nuclei/watershed.h"
#include "tissue/morphology.h"

/* A multiple of 4, as the network needs; the middles begin at multiples of 4 too, so that a pixel's
 * answer does not depend on the window it is in. The reach of segment_unet is 26 px. */
enum { WINDOW_PX = 256, MARGIN_PX = 32, STEP_PX = WINDOW_PX - 2 * MARGIN_PX };

#define RESIZE_FROM 1.02 /* a ratio of um/px below this is no other resolution */
#define PASS 0.9         /* watershed_split */
#define MASK_LEAST 0.5   /* probability of not being background */

/* One that is running, or waits for its next image. */
struct lane {
    struct model_run run; /* made when it is first needed */
    bool busy;
};

struct nuclei_net {
    struct model *model;
    struct nuclei_settings settings;
    struct plan_weights *weights;
    struct lane *lanes;
    int n_lanes;
    pthread_mutex_t lock; /* of busy */
    pthread_cond_t idle;
    char *text;
    struct nuclei_finder finder;
};

/* --- the model --- */

static bool check_model(const struct model *model, struct err *err)
{
    const struct shape *out = graph_shape(model->graph, model->graph->outputs[0].value);
    if (model->config.objective != OBJECTIVE_SEGMENT)
        return err_set(err, ERR_USAGE,
                       "%s: was trained to %s, not to segment nuclei; use a model of 'microtome "
                       "train' with objective: segment",
                       model->name, model_config_objective(model->config.objective));
    if (out->rank != 4 || out->dim[1] != SEGMENT_CLASSES)
        return err_set(err, ERR_FORMAT,
                       "%s: does not give background, inside and boundary for every pixel",
                       model->name);
    if (model->config.stain.method[0] && strcmp(model->config.stain.method, "none") != 0)
        return err_set(err, ERR_USAGE,
                       "%s: was trained on stains normalised with %s, which nuclei does not do; "
                       "train it without data.stain",
                       model->name, model->config.stain.method);
    return true;
}

static bool find_for(void *arg, const struct image *rgb, double mpp, int worker,
                     struct nuclei_labels *out, struct err *err)
{
    (void)worker;
    return nuclei_net_find(arg, rgb, mpp, out, err);
}

/* All that changes the nuclei. */
static char *describe(const struct model *model, const struct nuclei_settings *s)
{
    return text_format("model %016llx, fill_um2=%g min_distance_um=%g area_um2=%g-%g",
                       (unsigned long long)graph_hash(model->graph, 0, true), s->fill_um2,
                       s->min_distance_um, s->min_area_um2, s->max_area_um2);
}

bool nuclei_net_open(const char *path, const struct nuclei_settings *settings, int threads,
                     struct nuclei_net **out, struct err *err)
{
    struct nuclei_net *net = calloc(1, sizeof *net);
    if (!net)
        return err_memory(err, path);
    pthread_mutex_init(&net->lock, NULL);
    pthread_cond_init(&net->idle, NULL);
    net->settings = *settings;
    net->n_lanes = threads;
    bool ok = model_open(&(struct model_source){ .file = path }, &net->model, err) &&
              check_model(net->model, err);
    if (ok) {
        net->lanes = calloc((size_t)threads, sizeof *net->lanes);
        net->weights = plan_weights_new();
        net->text = describe(net->model, settings);
        ok = (net->lanes && net->weights && net->text) || err_memory(err, path);
    }
    if (!ok) {
        nuclei_net_close(net);
        return false;
    }
    net->finder = (struct nuclei_finder){
        .find = find_for,
        .arg = net,
        .margin_um = MARGIN_PX * net->model->config.spacing_um_px +
                     2 * sqrt(settings->max_area_um2 / M_PI), /* and the widest nucleus */
        .text = net->text,
    };
    *out = net;
    return true;
}

void nuclei_net_close(struct nuclei_net *net)
{
    if (!net)
        return;
    for (int i = 0; net->lanes && i < net->n_lanes; i++)
        model_run_free(&net->lanes[i].run);
    free(net->lanes);
    plan_weights_free(net->weights);
    model_close(net->model);
    free(net->text);
    pthread_cond_destroy(&net->idle);
    pthread_mutex_destroy(&net->lock);
    free(net);
}

const struct nuclei_finder *nuclei_net_finder(const struct nuclei_net *net)
{
    return &net->finder;
}

/* A lane for this thread, until it is returned. */
static struct lane *take_lane(struct nuclei_net *net)
{
    struct lane *lane = NULL;
    pthread_mutex_lock(&net->lock);
    while (!lane) {
        for (int i = 0; i < net->n_lanes && !lane; i++)
            lane = net->lanes[i].busy ? NULL : &net->lanes[i];
        if (!lane)
            pthread_cond_wait(&net->idle, &net->lock);
    }
    lane->busy = true;
    pthread_mutex_unlock(&net->lock);
    return lane;
}

static void return_lane(struct nuclei_net *net, struct lane *lane)
{
    pthread_mutex_lock(&net->lock);
    lane->busy = false;
    pthread_cond_signal(&net->idle);
    pthread_mutex_unlock(&net->lock);
}

static bool make_ready(const struct nuclei_net *net, struct model_run *run, struct err *err)
{
    struct plan_options options = { .threads = 1, .weights = net->weights };
    if (run->plan)
        return true;
    if (!model_run_with(net->model, 1, WINDOW_PX, WINDOW_PX, &options, run, err))
        return err_prefix(err, net->model->name);
    const struct shape wanted = SHAPE(1, SEGMENT_CLASSES, WINDOW_PX, WINDOW_PX);
    return shape_equal(graph_shape(run->graph, run->graph->outputs[0].value), &wanted) ||
           err_set(err, ERR_FORMAT, "%s: its output is not of the size of the image",
                   net->model->name);
}

/* --- the answer --- */

/* A place on a line of n pixels that is mirrored at its ends, again and again; the pixels at the
 * ends are not repeated. */
static int64_t mirrored(int64_t at, int64_t n)
{
    int64_t period = n > 1 ? 2 * (n - 1) : 1;
    at = (at % period + period) % period;
    return at < n ? at : period - at;
}

static void cut_window(const struct image *rgb, int64_t left, int64_t top, struct image *window)
{
    for (int64_t y = 0; y < WINDOW_PX; y++) {
        int64_t row = mirrored(top + y, rgb->height);
        for (int64_t x = 0; x < WINDOW_PX; x++)
            memcpy(image_at(window, x, y), image_at(rgb, mirrored(left + x, rgb->width), row), 3);
    }
}

/* The middle of a window's logits [classes, window, window] -> probabilities at (x, y) of planes
 * [2, height, width]. */
static void put_middle(const float *logits, int64_t x, int64_t y, int64_t width, int64_t height,
                       float *planes)
{
    const int64_t places = WINDOW_PX * WINDOW_PX;
    for (int64_t dy = 0; dy < STEP_PX && y + dy < height; dy++)
        for (int64_t dx = 0; dx < STEP_PX && x + dx < width; dx++) {
            const float *at = logits + (MARGIN_PX + dy) * WINDOW_PX + MARGIN_PX + dx;
            float scores[SEGMENT_CLASSES];
            double p[SEGMENT_CLASSES];
            for (int c = 0; c < SEGMENT_CLASSES; c++)
                scores[c] = at[c * places];
            model_scores(scores, SEGMENT_CLASSES, p);
            planes[(y + dy) * width + x + dx] = (float)p[SEGMENT_INSIDE];
            planes[(height + y + dy) * width + x + dx] = (float)p[SEGMENT_BOUNDARY];
        }
}

static bool run_windows(const struct nuclei_net *net, const struct image *rgb,
                        struct model_run *run, float *planes, struct err *err)
{
    struct image window = { 0 };
    bool ok = make_ready(net, run, err) && image_new(&window, WINDOW_PX, WINDOW_PX, 3, err);
    for (int64_t y = 0; ok && y < rgb->height; y += STEP_PX)
        for (int64_t x = 0; ok && x < rgb->width; x += STEP_PX) {
            cut_window(rgb, x - MARGIN_PX, y - MARGIN_PX, &window);
            model_normalize(&net->model->config, &window, plan_input(run->plan, 0));
            ok = plan_forward(run->plan, err);
            if (ok)
                put_middle(plan_output(run->plan, 0), x, y, rgb->width, rgb->height, planes);
        }
    image_free(&window);
    return ok;
}

/* planes [2, height, width] of an image at the network's um/px. */
static bool fill_planes(struct nuclei_net *net, const struct image *rgb, float *planes,
                        struct err *err)
{
    struct lane *lane = take_lane(net);
    bool ok = run_windows(net, rgb, &lane->run, planes, err);
    return_lane(net, lane);
    return ok;
}

static float *new_planes(int64_t width, int64_t height, struct err *err)
{
    float *planes = malloc((size_t)(2 * width * height) * sizeof *planes);
    if (!planes)
        err_memory(err, "the network's answer");
    return planes;
}

/* Of n pixels stretched to `more`: the two that a new pixel lies between, and how near the second.
 */
struct between {
    int64_t first, second;
    float share;
};
static struct between between(int64_t at, int64_t n, int64_t more)
{
    double place = ((double)at + 0.5) * (double)n / (double)more - 0.5;
    place = fmin(fmax(place, 0), (double)(n - 1));
    int64_t first = (int64_t)place;
    return (struct between){ first, first + 1 < n ? first + 1 : first,
                             (float)(place - (double)first) };
}

/* Bilinear, with half-pixel centres. */
static void stretch(const float *from, int64_t width, int64_t height, int64_t out_width,
                    int64_t out_height, float *to)
{
    for (int64_t y = 0; y < out_height; y++) {
        struct between v = between(y, height, out_height);
        for (int64_t x = 0; x < out_width; x++) {
            struct between h = between(x, width, out_width);
            const float *a = from + v.first * width, *b = from + v.second * width;
            float top = a[h.first] + h.share * (a[h.second] - a[h.first]);
            float bottom = b[h.first] + h.share * (b[h.second] - b[h.first]);
            to[y * out_width + x] = top + v.share * (bottom - top);
        }
    }
}

static bool planes_resized(struct nuclei_net *net, const struct image *rgb, double ratio,
                           float *planes, struct err *err)
{
    struct image resized = { 0 };
    int64_t width = (int64_t)fmax(1, round((double)rgb->width * ratio));
    int64_t height = (int64_t)fmax(1, round((double)rgb->height * ratio));
    float *own = new_planes(width, height, err);
    bool ok = own && image_resize(rgb, width, height, &resized, err) &&
              fill_planes(net, &resized, own, err);
    for (int i = 0; ok && i < 2; i++)
        stretch(own + i * width * height, width, height, rgb->width, rgb->height,
                planes + i * rgb->width * rgb->height);
    image_free(&resized);
    free(own);
    return ok;
}

bool nuclei_net_planes(struct nuclei_net *net, const struct image *rgb, double mpp, float **out,
                       struct err *err)
{
    double ratio = mpp / net->model->config.spacing_um_px;
    if (rgb->channels != 3)
        return err_set(err, ERR_USAGE, "nuclei are found in RGB images, not in grey ones");
    if (!(mpp > 0) || mpp > NUCLEI_COARSEST_MPP)
        return err_set(err, ERR_USAGE,
                       "nuclei cannot be resolved at %g um/px; use 1 um/px or finer", mpp);
    if (rgb->width * rgb->height > INT32_MAX)
        return err_set(err, ERR_USAGE,
                       "an image of %lld x %lld px is too large for nuclei; cut it into tiles",
                       (long long)rgb->width, (long long)rgb->height);
    float *planes = new_planes(rgb->width, rgb->height, err);
    bool ok = planes != NULL;
    if (ok && ratio < RESIZE_FROM && ratio > 1 / RESIZE_FROM)
        ok = fill_planes(net, rgb, planes, err);
    else if (ok)
        ok = planes_resized(net, rgb, ratio, planes, err);
    if (!ok)
        free(planes);
    else
        *out = planes;
    return ok;
}

bool nuclei_net_find(struct nuclei_net *net, const struct image *rgb, double mpp,
                     struct nuclei_labels *out, struct err *err)
{
    const struct nuclei_settings *settings = &net->settings;
    struct image mask = { 0 };
    struct watershed_split split = { PASS, settings->min_distance_um / mpp };
    float *planes = NULL;
    const int64_t n = rgb->width * rgb->height;
    *out = (struct nuclei_labels){ 0 };
    bool ok = nuclei_net_planes(net, rgb, mpp, &planes, err) &&
              image_new(&mask, rgb->width, rgb->height, 1, err);
    for (int64_t i = 0; ok && i < n; i++)
        mask.px[i] = planes[i] + planes[n + i] > (float)MASK_LEAST ? 255 : 0;
    ok = ok && morphology_fill_holes(&mask, settings->fill_um2 / (mpp * mpp), err) &&
         watershed_hills(planes, &mask, &split, out, err) &&
         nuclei_labels_tidy(out, (int64_t)ceil(settings->min_area_um2 / (mpp * mpp)),
                            (int64_t)(settings->max_area_um2 / (mpp * mpp)), err);
    if (!ok)
        nuclei_labels_free(out);
    image_free(&mask);
    free(planes);
    return ok;
}
