/* belief_orders.c: a map, an image and its network -> how fast the score falls as pixels are
 * deleted in the order of the map, and rises as they are inserted, against random orders. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "explain/belief.h"
#include "net/model/classifier.h"
#include "prepare/augment_ops.h"

/* Equal pixels of a map are ordered by areas of this fraction of a side. */
enum { TIE_AREAS = 8 };

struct belief_settings belief_defaults(void)
{
    return (struct belief_settings){ .steps = 16, .random_orders = 3, .unchanged = 0.5, .seed = 1 };
}

/* A view being taken apart. Images are [3, pixels]. */
struct dissection {
    const struct explain_settings *settings;
    const struct belief_settings *belief;
    struct probe *probe;
    const struct ctx *ctx;
    const float *original;
    float *mean, *blurred; /* images */
    float *current;        /* the image of the curve in progress */
    float *waiting;        /* [batch] images that have not been scored */
    double **places;       /* [batch] where their scores belong */
    double *scores;        /* [classes] */
    int64_t n_waiting, pixels, class_index;
};

static void dissection_end(struct dissection *d)
{
    free(d->mean), free(d->blurred), free(d->current), free(d->waiting), free(d->places);
    free(d->scores);
}

static void fill_mean(const float *image, int64_t pixels, float *out)
{
    for (int64_t c = 0; c < 3; c++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++)
            sum += (double)image[c * pixels + i];
        for (int64_t i = 0; i < pixels; i++)
            out[c * pixels + i] = (float)(sum / (double)pixels);
    }
}

static bool fill_blurred(const struct explain_settings *settings, const struct image *image,
                         float *out, struct err *err)
{
    struct image blurred = { 0 };
    int64_t shorter = image->width < image->height ? image->width : image->height;
    if (!image_new(&blurred, image->width, image->height, image->channels, err))
        return false;
    memcpy(blurred.px, image->px, image_bytes(image));
    bool ok = augment_blur(&blurred, fmax(1, (double)shorter / 8), err);
    if (ok)
        model_normalize(&settings->model->config, &blurred, out);
    image_free(&blurred);
    return ok;
}

static bool dissection_begin(struct dissection *d, const struct explain_view *view, struct err *err)
{
    size_t count = (size_t)(3 * d->pixels), batch = (size_t)d->settings->batch;
    d->original = view->input;
    d->class_index = view->class_index;
    d->mean = malloc(count * sizeof *d->mean);
    d->blurred = malloc(count * sizeof *d->blurred);
    d->current = malloc(count * sizeof *d->current);
    d->waiting = malloc(batch * count * sizeof *d->waiting);
    d->places = malloc(batch * sizeof *d->places);
    d->scores = malloc((size_t)probe_classes(d->probe) * sizeof *d->scores);
    if (!d->mean || !d->blurred || !d->current || !d->waiting || !d->places || !d->scores)
        return err_memory(err, "the images of a deletion");
    fill_mean(view->input, d->pixels, d->mean);
    return fill_blurred(d->settings, view->image, d->blurred, err);
}

static bool score_waiting(struct dissection *d, struct err *err)
{
    if (ctx_stopped(d->ctx))
        return err_stopped(err);
    if (d->n_waiting == 0)
        return true;
    if (!probe_forward(d->probe, d->waiting, d->n_waiting, err))
        return false;
    const float *logits = probe_logits(d->probe);
    int64_t classes = probe_classes(d->probe);
    for (int64_t i = 0; i < d->n_waiting; i++) {
        if (!model_score(d->settings->model, logits + i * classes, d->scores, err))
            return false;
        *d->places[i] = d->scores[d->class_index];
    }
    d->n_waiting = 0;
    return true;
}

/* Has the image scored, sooner or later; the score goes to *place. */
static bool add_image(struct dissection *d, const float *image, double *place, struct err *err)
{
    size_t count = (size_t)(3 * d->pixels);
    memcpy(d->waiting + (size_t)d->n_waiting * count, image, count * sizeof *image);
    d->places[d->n_waiting++] = place;
    return d->n_waiting < d->settings->batch || score_waiting(d, err);
}

static int64_t pixels_at(const struct dissection *d, int64_t step)
{
    return (int64_t)llround((double)d->pixels * (double)step / (double)d->belief->steps);
}

/* The images between the ends of a curve, which is [steps + 1]: pixels of `to` replace those of
 * `from` in this order. */
static bool add_curve(struct dissection *d, const int64_t *order, const float *from,
                      const float *to, double *curve, struct err *err)
{
    memcpy(d->current, from, (size_t)(3 * d->pixels) * sizeof *from);
    for (int64_t step = 1; step < d->belief->steps; step++) {
        for (int64_t i = pixels_at(d, step - 1); i < pixels_at(d, step); i++)
            for (int64_t c = 0; c < 3; c++)
                d->current[c * d->pixels + order[i]] = to[c * d->pixels + order[i]];
        if (!add_image(d, d->current, &curve[step], err))
            return false;
    }
    return true;
}

static double area_under(const struct dissection *d, const double *curve)
{
    double area = 0;
    for (int64_t step = 0; step < d->belief->steps; step++)
        area += 0.5 * (curve[step] + curve[step + 1]) *
                (double)(pixels_at(d, step + 1) - pixels_at(d, step)) / (double)d->pixels;
    return area;
}

struct ordered {
    float value;
    uint32_t tie;
    int64_t index;
};

static int highest_first(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie < y->tie ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* order [pixels]: those of the map from the highest to the lowest. */
static bool order_pixels(const struct dissection *d, const float *map, uint64_t key, int64_t *order,
                         struct err *err)
{
    int64_t width = d->settings->width, height = d->settings->height;
    uint32_t ties[TIE_AREAS * TIE_AREAS];
    struct rng rng = rng_new(key, rng_hash("ties of a map"), 0);
    for (int i = 0; i < TIE_AREAS * TIE_AREAS; i++)
        ties[i] = rng_u32(&rng);
    struct ordered *ordered = malloc((size_t)d->pixels * sizeof *ordered);
    if (!ordered)
        return err_memory(err, "the order of pixels");
    for (int64_t i = 0; i < d->pixels; i++) {
        int64_t row = i / width * TIE_AREAS / height, column = i % width * TIE_AREAS / width;
        ordered[i] = (struct ordered){ map[i], ties[row * TIE_AREAS + column], i };
    }
    qsort(ordered, (size_t)d->pixels, sizeof *ordered, highest_first);
    for (int64_t i = 0; i < d->pixels; i++)
        order[i] = ordered[i].index;
    free(ordered);
    return true;
}

/* The order of the same map after it was mirrored, transposed (if it is square) and moved. */
static void move_order(const struct dissection *d, const int64_t *order, uint64_t key,
                       int64_t number, int64_t *moved)
{
    int64_t width = d->settings->width, height = d->settings->height;
    struct rng rng = rng_new(key, rng_hash("random order"), (uint64_t)number);
    uint64_t way = rng_below(&rng, width == height ? 8 : 4);
    int64_t right = (int64_t)rng_below(&rng, (uint64_t)width);
    int64_t down = (int64_t)rng_below(&rng, (uint64_t)height);
    for (int64_t i = 0; i < d->pixels; i++) {
        int64_t x = order[i] % width, y = order[i] / width;
        int64_t column = way & 4 ? y : x, row = way & 4 ? x : y;
        column = way & 1 ? width - 1 - column : column;
        row = way & 2 ? height - 1 - row : row;
        moved[i] = (row + down) % height * width + (column + right) % width;
    }
}

/* Scores of the images that the curves of all maps begin and end with. */
struct ends {
    double original, mean, blurred;
};

/* What the orders of one map are measured in: order 0 is its own, the others are random. */
struct measurement {
    int64_t *order, *moved; /* [pixels] */
    double *curves;         /* [1 + random_orders, 2, steps + 1]: deletion, insertion */
};

static double *curve_of(const struct dissection *d, const struct measurement *m, int64_t order,
                        bool insertion)
{
    return m->curves + (2 * order + insertion) * (d->belief->steps + 1);
}

static bool measure_curves(struct dissection *d, const struct ends *ends, uint64_t key,
                           struct measurement *m, struct err *err)
{
    int64_t last = d->belief->steps;
    for (int64_t k = 0; k <= d->belief->random_orders; k++) {
        double *deletion = curve_of(d, m, k, false), *insertion = curve_of(d, m, k, true);
        if (k > 0)
            move_order(d, m->order, key, k, m->moved);
        const int64_t *order = k > 0 ? m->moved : m->order;
        deletion[0] = insertion[last] = ends->original;
        deletion[last] = ends->mean, insertion[0] = ends->blurred;
        if (!add_curve(d, order, d->original, d->mean, deletion, err) ||
            !add_curve(d, order, d->blurred, d->original, insertion, err))
            return false;
    }
    return score_waiting(d, err);
}

static void summarize(const struct dissection *d, const struct measurement *m,
                      struct belief_order *out)
{
    int64_t orders = d->belief->random_orders;
    out->deletion = area_under(d, curve_of(d, m, 0, false));
    out->insertion = area_under(d, curve_of(d, m, 0, true));
    out->random_deletion = out->random_insertion = 0;
    for (int64_t k = 1; k <= orders; k++) {
        out->random_deletion += area_under(d, curve_of(d, m, k, false)) / (double)orders;
        out->random_insertion += area_under(d, curve_of(d, m, k, true)) / (double)orders;
    }
    out->better_by =
        0.5 * (out->random_deletion - out->deletion + out->insertion - out->random_insertion);
    for (int64_t step = 0; step <= d->belief->steps; step++) {
        out->deletion_curve[step] = curve_of(d, m, 0, false)[step];
        out->insertion_curve[step] = curve_of(d, m, 0, true)[step];
    }
}

/* Whether the map orders anything. */
static bool is_ordering(const float *map, int64_t pixels)
{
    bool differs = false;
    for (int64_t i = 0; i < pixels; i++) {
        if (!isfinite(map[i]))
            return false;
        differs = differs || map[i] != map[0];
    }
    return differs;
}

static struct belief_order undefined_order(int64_t steps)
{
    struct belief_order order = { NAN, NAN, NAN, NAN, NAN, steps, { 0 }, { 0 } };
    for (int64_t step = 0; step <= steps; step++)
        order.deletion_curve[step] = order.insertion_curve[step] = NAN;
    return order;
}

static bool measure_maps(struct dissection *d, uint64_t key, const float *const *maps, int n_maps,
                         struct measurement *m, struct belief_order *out, struct err *err)
{
    struct ends ends;
    if (!add_image(d, d->original, &ends.original, err) ||
        !add_image(d, d->mean, &ends.mean, err) || !add_image(d, d->blurred, &ends.blurred, err) ||
        !score_waiting(d, err))
        return false;
    for (int i = 0; i < n_maps; i++) {
        out[i] = undefined_order(d->belief->steps);
        if (!is_ordering(maps[i], d->pixels))
            continue;
        if (!order_pixels(d, maps[i], key, m->order, err) || !measure_curves(d, &ends, key, m, err))
            return false;
        summarize(d, m, &out[i]);
    }
    return true;
}

bool belief_orders(const struct explain_settings *settings, const struct belief_settings *belief,
                   struct probe *probe, const struct explain_view *view, const float *const *maps,
                   int n_maps, const struct ctx *ctx, struct belief_order *out, struct err *err)
{
    struct dissection d = { .settings = settings,
                            .belief = belief,
                            .probe = probe,
                            .ctx = ctx,
                            .pixels = settings->height * settings->width };
    struct measurement m = {
        .order = malloc((size_t)d.pixels * sizeof *m.order),
        .moved = malloc((size_t)d.pixels * sizeof *m.moved),
        .curves = malloc((size_t)(2 * (1 + belief->random_orders) * (belief->steps + 1)) *
                         sizeof *m.curves),
    };
    bool ok = (m.order && m.moved && m.curves) || err_memory(err, "the order of pixels");
    ok = ok && dissection_begin(&d, view, err) &&
         measure_maps(&d, view->key, maps, n_maps, &m, out, err);
    free(m.order), free(m.moved), free(m.curves);
    dissection_end(&d);
    return ok;
}
