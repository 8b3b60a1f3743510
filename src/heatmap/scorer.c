/* scorer.c: see scorer.h. */
#include "heatmap/scorer_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_READY 12
#define LEAST_SCORED 4 /* cells of a block that all look like probabilities: no chance any more */

/* A network planned at one shape. */
struct ready {
    int model;
    bool dense;
    int64_t batch, height, width;
    struct graph *graph;
    struct plan *plan;
    int64_t bytes;
    uint64_t used; /* when it was used last */
};

struct scorer {
    const struct ensemble *ensemble;
    struct ready ready[MAX_READY];
    int n_ready;
    uint64_t clock;
    void *arena; /* [ensemble->arena_bytes], of whichever plan runs; pages come with their use */
};

struct scorer *scorer_new(const struct ensemble *ensemble)
{
    struct scorer *scorer = calloc(1, sizeof *scorer);
    if (!scorer)
        return NULL;
    scorer->ensemble = ensemble;
    void *at = mmap(NULL, (size_t)ensemble->arena_bytes + 1, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        free(scorer);
        return NULL;
    }
    madvise(at, (size_t)ensemble->arena_bytes + 1, MADV_HUGEPAGE); /* a wish */
    scorer->arena = at;
    return scorer;
}

static void ready_free(struct ready *ready)
{
    plan_free(ready->plan);
    graph_free(ready->graph);
    *ready = (struct ready){ 0 };
}

void scorer_free(struct scorer *scorer)
{
    if (!scorer)
        return;
    for (int i = 0; i < scorer->n_ready; i++)
        ready_free(&scorer->ready[i]);
    munmap(scorer->arena, (size_t)scorer->ensemble->arena_bytes + 1);
    free(scorer);
}

static bool ready_make(const struct ensemble *ensemble, void *arena, struct ready *ready,
                       struct err *err)
{
    const struct ensemble_model *m = &ensemble->models[ready->model];
    struct plan_options options = { .mode = PLAN_INFER,
                                    .threads = 1,
                                    .by_image = !ready->dense,
                                    .weights = ensemble->weights,
                                    .weights_budget = (size_t)ensemble->weights_budget,
                                    .arena = arena,
                                    .arena_room = (size_t)ensemble->arena_bytes,
                                    .direct = ensemble->direct,
                                    .fast = ensemble->fast };
    struct dense_spec spec = { m->window, m->dense_stride, ready->height, ready->width };
    struct graph *sized = NULL;
    bool ok = ready->dense ? transform_dense(m->graph, &spec, &sized, err)
                           : transform_resize(m->graph, ready->batch, ready->height, ready->width,
                                              &sized, err);
    ok = ok && (ready->dense || model_check_classifies(m->model, sized, err)) &&
         transform_fuse(sized, NULL, 0, &ready->graph, err) &&
         plan_new(ready->graph, &options, &ready->plan, err);
    graph_free(sized);
    if (!ok) {
        ready_free(ready);
        return false;
    }
    struct plan_memory memory = plan_memory(ready->plan);
    ready->bytes = (int64_t)(memory.weights + (memory.lent ? 0 : memory.arena));
    return true;
}

bool scorer_measure(const struct ensemble *ensemble, int model, int64_t input,
                    struct plan_memory *memory, struct err *err)
{
    int64_t side = input > 0 ? input : ensemble->models[model].side;
    struct ready ready = {
        .model = model, .dense = input > 0, .batch = ensemble->batch, .height = side, .width = side
    };
    if (!ready_make(ensemble, NULL, &ready, err))
        return false;
    *memory = plan_memory(ready.plan);
    ready_free(&ready);
    return true;
}

void *scorer_lend(struct scorer *scorer)
{
    for (int i = 0; i < scorer->n_ready; i++)
        ready_free(&scorer->ready[i]);
    scorer->n_ready = 0;
    madvise(scorer->arena, (size_t)scorer->ensemble->arena_bytes + 1, MADV_DONTNEED);
    return scorer->arena;
}

const struct ensemble *scorer_ensemble(const struct scorer *scorer)
{
    return scorer->ensemble;
}

/* Gives up the plans that were not used for longest until there is room for another. */
static void make_room(struct scorer *scorer, int64_t bytes)
{
    for (;;) {
        int64_t held = scorer->ensemble->arena_bytes + bytes;
        int oldest = 0;
        for (int i = 0; i < scorer->n_ready; i++) {
            held += scorer->ready[i].bytes;
            oldest = scorer->ready[i].used < scorer->ready[oldest].used ? i : oldest;
        }
        bool fits = held <= scorer->ensemble->worker_bytes && scorer->n_ready < MAX_READY;
        if (fits || scorer->n_ready == 0)
            return;
        ready_free(&scorer->ready[oldest]);
        scorer->ready[oldest] = scorer->ready[--scorer->n_ready];
    }
}

static struct plan *plan_of(struct scorer *scorer, int model, bool dense, int64_t batch,
                            int64_t height, int64_t width, struct err *err)
{
    struct ready wanted = {
        .model = model, .dense = dense, .batch = batch, .height = height, .width = width
    };
    scorer->clock++;
    for (int i = 0; i < scorer->n_ready; i++) {
        struct ready *r = &scorer->ready[i];
        if (r->model == model && r->dense == dense && r->batch == batch && r->height == height &&
            r->width == width) {
            r->used = scorer->clock;
            return r->plan;
        }
    }
    if (!ready_make(scorer->ensemble, scorer->arena, &wanted, err))
        return NULL;
    make_room(scorer, wanted.bytes);
    wanted.used = scorer->clock;
    scorer->ready[scorer->n_ready++] = wanted;
    return wanted.plan;
}

void scorer_fill(const struct ensemble_model *m, const struct image *region, int64_t x, int64_t y,
                 int64_t h, int64_t w, struct symmetry s, float *out)
{
    int64_t plane = h * w;
    for (int64_t row = 0; row < h; row++)
        for (int64_t column = 0; column < w; column++) {
            int64_t r = s.flip_y ? h - 1 - row : row, c = s.flip_x ? w - 1 - column : column;
            const uint8_t *px =
                s.transpose ? image_at(region, x + r, y + c) : image_at(region, x + c, y + r);
            float *to = out + row * w + column;
            to[0] = m->normal[0][px[0]];
            to[plane] = m->normal[1][px[1]];
            to[2 * plane] = m->normal[2][px[2]];
        }
}

/* Logits of a block of n_w x n_h cells (a size the ensemble knows), of which width x height are
 * kept: out [height, width, classes]. */
static bool dense_logits(struct scorer *scorer, int model, const struct image *region, int64_t n_w,
                         int64_t n_h, int64_t width, int64_t height, struct symmetry s, float *out,
                         struct err *err)
{
    const struct ensemble *e = scorer->ensemble;
    const struct ensemble_model *m = &e->models[model];
    int64_t w = ensemble_input(e, m, s.transpose ? n_h : n_w);
    int64_t h = ensemble_input(e, m, s.transpose ? n_w : n_h);
    int64_t begin = e->before - m->window / 2 - m->halo;
    struct plan *plan = plan_of(scorer, model, true, 1, h, w, err);
    if (!plan)
        return false;
    scorer_fill(m, region, begin, begin, h, w, s, plan_input(plan, 0));
    if (!plan_forward(plan, err))
        return false;
    const float *from = plan_output(plan, 0);
    int64_t columns = (w - m->window) / m->dense_stride + 1;
    int64_t rows = (h - m->window) / m->dense_stride + 1, first = m->halo / m->dense_stride;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            int64_t r = first + (s.transpose ? column : row) * m->pick;
            int64_t c = first + (s.transpose ? row : column) * m->pick;
            r = s.flip_y ? rows - 1 - r : r;
            c = s.flip_x ? columns - 1 - c : c;
            for (int64_t k = 0; k < e->n_classes; k++)
                *out++ = from[(k * rows + r) * columns + c];
        }
    return true;
}

/* One window into its place in the batch: prepared as a patch is, then laid. */
static bool fill_window(const struct ensemble_model *m, const struct image *region, int64_t x,
                        int64_t y, int symmetry, float *out, struct err *err)
{
    if (m->side == m->window) {
        scorer_fill(m, region, x, y, m->side, m->side, scorer_symmetry(symmetry), out);
        return true;
    }
    struct image window = { 0 };
    float *plain = symmetry ? malloc((size_t)(3 * m->side * m->side) * sizeof *plain) : out;
    bool ok =
        plain ? image_new(&window, m->window, m->window, 3, err) : err_memory(err, "a window");
    for (int64_t row = 0; ok && row < m->window; row++)
        memcpy(image_at(&window, 0, row), image_at(region, x, y + row), (size_t)m->window * 3);
    ok = ok && model_prepare(&m->model->config, &window, plain, err);
    if (ok && symmetry)
        model_lay(plain, 3, m->side, symmetry, out);
    if (symmetry)
        free(plain);
    image_free(&window);
    return ok;
}

/* Logits of the wanted cells of a block: out [height, width, classes]; others are not touched. */
static bool window_logits(struct scorer *scorer, int model, const struct image *region,
                          const struct scorer_block *block, int symmetry, float *out,
                          struct err *err)
{
    const struct ensemble *e = scorer->ensemble;
    const struct ensemble_model *m = &e->models[model];
    int64_t batch = e->batch > 0 ? e->batch : 1, begin = e->before - m->window / 2;
    int64_t cells = block->width * block->height, image = 3 * m->side * m->side, places[64];
    struct plan *plan = plan_of(scorer, model, false, batch, m->side, m->side, err);
    if (!plan)
        return false;
    int64_t n = 0;
    for (int64_t i = 0; i < cells; i++) {
        if (block->wanted[i]) {
            int64_t x = begin + i % block->width * e->stride;
            int64_t y = begin + i / block->width * e->stride;
            places[n] = i;
            if (!fill_window(m, region, x, y, symmetry, plan_input(plan, 0) + n++ * image, err))
                return false;
        }
        if (n < batch && i + 1 < cells)
            continue;
        if (n > 0 && !plan_forward(plan, err))
            return false;
        const float *logits = plan_output(plan, 0);
        for (int64_t k = 0; k < n; k++)
            memcpy(out + places[k] * e->n_classes, logits + k * e->n_classes,
                   (size_t)e->n_classes * sizeof *out);
        n = 0;
    }
    return true;
}

int scorer_symmetries(const struct ensemble *ensemble)
{
    return ensemble->tta ? 8 : 1;
}

bool scorer_logits(struct scorer *scorer, int model, bool dense, int symmetry,
                   const struct image *region, int64_t width, int64_t height, float *logits,
                   struct err *err)
{
    struct symmetry s = scorer_symmetry(symmetry);
    if (dense)
        return dense_logits(scorer, model, region, width, height, width, height, s, logits, err);
    bool *wanted = malloc((size_t)(width * height) * sizeof *wanted);
    if (!wanted)
        return err_memory(err, "a block");
    memset(wanted, true, (size_t)(width * height));
    struct scorer_block block = { width, height, wanted };
    bool ok = window_logits(scorer, model, region, &block, symmetry, logits, err);
    free(wanted);
    return ok;
}

bool scorer_add(const struct ensemble *e, const struct ensemble_model *m, float *logits,
                const struct scorer_block *block, double *p, float *scores, struct err *err)
{
    int64_t n = e->n_classes, wanted = 0, scored = 0;
    for (int64_t i = 0; i < block->width * block->height; i++) {
        if (!block->wanted[i])
            continue;
        wanted++, scored += model_seems_scored(m->model, logits + i * n);
        for (int64_t k = 0; e->dense && m->gain && k < n; k++)
            logits[i * n + k] = (float)(m->gain[k] * (double)logits[i * n + k] + m->offset[k]);
        if (!model_score(m->model, logits + i * n, p, err))
            return false;
        for (int64_t k = 0; k < n; k++)
            scores[i * n + k] += (float)p[k];
    }
    return wanted < LEAST_SCORED || scored < wanted || model_refuse_scored(m->model, err);
}

/* A network that gives NaN itself must not look like glass. */
bool scorer_finish(const struct ensemble *e, const struct scorer_block *block, float *scores,
                   struct err *err)
{
    float share = 1.0f / (float)(e->n * scorer_symmetries(e));
    for (int64_t i = 0; i < block->width * block->height * e->n_classes; i++) {
        bool wanted = block->wanted[i / e->n_classes];
        if (wanted && isnan(scores[i]))
            return err_set(err, ERR_FORMAT,
                           "%s: produces scores that are not numbers; are its weights damaged?",
                           e->n == 1 ? e->models[0].model->name : "a model");
        scores[i] = wanted ? scores[i] * share : NAN;
    }
    return true;
}

bool scorer_run(struct scorer *scorer, const struct image *region, const struct scorer_block *block,
                float *scores, struct err *err)
{
    const struct ensemble *e = scorer->ensemble;
    int64_t cells = block->width * block->height, floats = cells * e->n_classes;
    int64_t n_w = ensemble_size(e, block->width), n_h = ensemble_size(e, block->height);
    float *logits = malloc((size_t)floats * sizeof *logits);
    double *p = malloc((size_t)e->n_classes * sizeof *p);
    bool ok = (logits && p) || err_memory(err, "the scores of a block");
    memset(scores, 0, (size_t)floats * sizeof *scores);
    int symmetries = scorer_symmetries(e);
    for (int model = 0; ok && model < e->n; model++)
        for (int i = 0; ok && i < symmetries; i++) {
            struct symmetry s = scorer_symmetry(i);
            ok = e->dense ? dense_logits(scorer, model, region, n_w, n_h, block->width,
                                         block->height, s, logits, err)
                          : window_logits(scorer, model, region, block, i, logits, err);
            ok = ok && scorer_add(e, &e->models[model], logits, block, p, scores, err);
        }
    ok = ok && scorer_finish(e, block, scores, err);
    free(logits);
    free(p);
    return ok;
}
