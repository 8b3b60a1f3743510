/* subject_windows.c: windows of slides that have a heatmap as subjects: those with the highest
 * scores, those of each lesion, or random ones; no two of a slide overlap (subject.h). Rows of a
 * heatmap are read in bands; only lesions need all scores of a slide in memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/console.h"
#include "base/folder.h"
#include "base/rng.h"
#include "base/text.h"
#include "explain/subject.h"
#include "heatmap/model_window.h"
#include "heatmap/window_source.h"
#include "verdict/lesion_finder.h"

#define BAND_BYTES (INT64_C(16) << 20)
#define DRAWS 32   /* random cells that are looked at for each window */
#define OPEN_UM 10 /* as the defaults of classify lesions */
#define CLOSE_UM 37.5

struct window_slide {
    struct heatmap_info info;
    char *folder; /* of the heatmap */
};

struct window_state {
    struct window_access access;
    struct window_slide *slides; /* [n] */
    size_t n;
    int32_t entered; /* the slide whose pixels are open; -1: none */
    struct window_source *pixels;
};

/* --- reading --- */

static bool windows_enter(struct subjects *subjects, int32_t source, struct err *err)
{
    struct window_state *state = subjects->state;
    if (state->entered == source)
        return true;
    window_source_close(state->pixels);
    state->pixels = NULL;
    state->entered = -1;
    if (!window_source_open(&state->slides[source].info, &state->access, &state->pixels, err))
        return false;
    state->entered = source;
    return true;
}

static bool windows_read(struct subjects *subjects, const struct subject *subject,
                         struct image *out, struct err *err)
{
    struct window_state *state = subjects->state;
    int64_t side = state->slides[subject->source].info.window;
    return window_source_read(state->pixels, subject->x, subject->y, side, side, out, err);
}

static void windows_close(void *arg)
{
    struct window_state *state = arg;
    window_source_close(state->pixels);
    for (size_t i = 0; i < state->n; i++)
        heatmap_info_free(&state->slides[i].info), free(state->slides[i].folder);
    free(state->slides);
    free(state);
}

static const struct subject_kind windows = {
    .windows = true, .enter = windows_enter, .read = windows_read, .close = windows_close
};

const struct heatmap_info *subjects_heatmap(const struct subjects *subjects, int32_t source)
{
    const struct window_state *state = subjects->state;
    return subjects->kind == &windows ? &state->slides[source].info : NULL;
}

const char *subjects_folder(const struct subjects *subjects, int32_t source)
{
    const struct window_state *state = subjects->state;
    return subjects->kind == &windows ? state->slides[source].folder : NULL;
}

struct window_source *subjects_pixels(const struct subjects *subjects)
{
    const struct window_state *state = subjects->state;
    return subjects->kind == &windows ? state->pixels : NULL;
}

/* --- picking --- */

struct cell {
    int64_t column, row;
    double score;
};

/* The windows of a slide that were picked so far, and which cells may be picked. */
struct picking {
    const struct heatmap *heatmap;
    const struct heatmap_info *info;
    int64_t class_index, top;
    double min_score;      /* -INFINITY: none */
    const int32_t *labels; /* of lesions; NULL: all cells */
    int32_t label;
    struct cell *cells; /* [top] */
    int64_t n;
    double highest; /* of all scores that were seen */
    const struct ctx *ctx;
};

static bool overlaps(const struct picking *picking, int64_t column, int64_t row)
{
    int64_t window = picking->info->window, stride = picking->info->stride;
    for (int64_t i = 0; i < picking->n; i++)
        if (llabs(picking->cells[i].column - column) * stride < window &&
            llabs(picking->cells[i].row - row) * stride < window)
            return true;
    return false;
}

typedef void (*cell_fn)(struct picking *picking, struct cell cell, void *arg);

/* Every cell with a score, row by row. */
static bool each_cell(struct picking *picking, cell_fn fn, void *arg, struct err *err)
{
    const struct heatmap_info *info = picking->info;
    int64_t rows = heatmap_rows_in(info, BAND_BYTES);
    float *band = malloc((size_t)(rows * info->width * info->n_classes) * sizeof *band);
    bool ok = band || err_memory(err, info->slide);
    for (int64_t row = 0; ok && row < info->height; row += rows) {
        int64_t n = info->height - row < rows ? info->height - row : rows;
        ok = (!ctx_stopped(picking->ctx) || err_stopped(err)) &&
             heatmap_read_rows(picking->heatmap, row, n, band, err);
        for (int64_t i = 0; ok && i < n * info->width; i++) {
            float score = band[i * info->n_classes + picking->class_index];
            if (!isnan(score))
                fn(picking, (struct cell){ i % info->width, row + i / info->width, (double)score },
                   arg);
        }
    }
    free(band);
    return ok;
}

/* Keeps the highest cell that may be picked; the first of several. */
static void look_for_best(struct picking *picking, struct cell cell, void *arg)
{
    struct cell *best = arg;
    picking->highest = fmax(picking->highest, cell.score);
    if (cell.score < picking->min_score || cell.score <= best->score ||
        (picking->labels &&
         picking->labels[cell.row * picking->info->width + cell.column] != picking->label) ||
        overlaps(picking, cell.column, cell.row))
        return;
    *best = cell;
}

/* One pass over the heatmap for each window: exact, in a band of memory. */
static bool pick_strongest(struct picking *picking, struct err *err)
{
    bool ok = true, found = true;
    while (ok && found && picking->n < picking->top) {
        struct cell best = { .score = -INFINITY };
        ok = each_cell(picking, look_for_best, &best, err);
        found = ok && best.score > -INFINITY;
        if (found)
            picking->cells[picking->n++] = best;
    }
    return ok;
}

struct draw {
    int64_t rank; /* among the cells with a score */
    int64_t turn; /* when it was drawn */
    struct cell cell;
};

static int by_rank(const void *a, const void *b)
{
    const struct draw *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_turn(const void *a, const void *b)
{
    const struct draw *x = a, *y = b;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

struct draws {
    struct draw *items; /* by rank */
    int64_t n, next, seen;
};

static void place_draws(struct picking *picking, struct cell cell, void *arg)
{
    (void)picking;
    struct draws *draws = arg;
    for (; draws->next < draws->n && draws->items[draws->next].rank == draws->seen; draws->next++)
        draws->items[draws->next].cell = cell;
    draws->seen++;
}

static bool pick_random(struct picking *picking, uint64_t seed, struct err *err)
{
    const struct heatmap_info *info = picking->info;
    struct rng rng = rng_new(seed, rng_hash(info->slide), 0);
    struct draws draws = { .n = info->scored > 0 ? DRAWS * picking->top : 0 };
    draws.items = calloc((size_t)draws.n + 1, sizeof *draws.items);
    bool ok = draws.items || err_memory(err, info->slide);
    for (int64_t i = 0; ok && i < draws.n; i++)
        draws.items[i] =
            (struct draw){ (int64_t)rng_below(&rng, (uint64_t)info->scored), i, { 0 } };
    if (ok)
        qsort(draws.items, (size_t)draws.n, sizeof *draws.items, by_rank);
    ok = ok && each_cell(picking, place_draws, &draws, err);
    draws.n = draws.next; /* all, unless the heatmap has fewer scores than it says */
    if (ok)
        qsort(draws.items, (size_t)draws.n, sizeof *draws.items, by_turn);
    for (int64_t i = 0; ok && i < draws.n && picking->n < picking->top; i++)
        if (!overlaps(picking, draws.items[i].cell.column, draws.items[i].cell.row))
            picking->cells[picking->n++] = draws.items[i].cell;
    free(draws.items);
    return ok;
}

/* --- listing --- */

static bool add_windows(struct subjects *out, int32_t source, const struct picking *picking,
                        int64_t lesion, struct err *err)
{
    const struct heatmap_info *info = picking->info;
    for (int64_t i = 0; i < picking->n; i++) {
        const struct cell *cell = &picking->cells[i];
        int64_t x = info->origin_x + cell->column * info->stride - info->window / 2;
        int64_t y = info->origin_y + cell->row * info->stride - info->window / 2;
        int64_t x_l0 = llround((double)x * info->downsample);
        int64_t y_l0 = llround((double)y * info->downsample);
        char *name = text_format("%s_x%lld_y%lld", info->slide, (long long)x_l0, (long long)y_l0);
        struct subject *subject =
            name ? subjects_add(out, name, info->path, info->slide, err) : NULL;
        free(name);
        if (!subject)
            return err_memory(err, info->slide);
        subject->source = source;
        subject->x = x, subject->y = y;
        subject->x_l0 = x_l0, subject->y_l0 = y_l0;
        subject->downsample = info->downsample;
        subject->mpp = info->mpp;
        subject->found = cell->score;
        subject->lesion = lesion;
        snprintf(subject->inputs, sizeof subject->inputs, "%s", info->inputs);
    }
    return true;
}

static bool add_area(struct subjects *out, int32_t source, const struct heatmap_info *info,
                     const struct lesion_area *area, int64_t lesion, struct err *err)
{
    if (!array_grow(&out->areas, &out->areas_room, out->n_areas + 1, sizeof *out->areas,
                    "the lesions", err))
        return false;
    out->areas[out->n_areas++] = (struct subject_area){ .source = source,
                                                        .lesion = lesion,
                                                        .left = area->left * info->stride,
                                                        .top = area->top * info->stride,
                                                        .right = area->right * info->stride,
                                                        .bottom = area->bottom * info->stride };
    return true;
}

/* The lesions of a slide: their areas and, if these are picked, the strongest windows of each. */
static bool add_lesions(const struct subject_request *request, struct picking *picking,
                        int32_t source, struct subjects *out, struct err *err)
{
    const struct heatmap_info *info = picking->info;
    struct heat_field field = { 0 };
    struct lesion_areas areas = { 0 };
    bool assumed;
    double cell_um = lesion_cell_um(info, &assumed);
    bool ok = heatmap_need_scores(info, "--pick lesions", err) &&
              heat_field_read(picking->heatmap, picking->class_index, &field, err) &&
              lesion_areas_find(&field, request->min_score, OPEN_UM / cell_um, CLOSE_UM / cell_um,
                                &areas, err);
    free(field.values);
    for (int32_t i = 0; ok && i < areas.n; i++) {
        ok = add_area(out, source, info, &areas.items[i], i + 1, err);
        picking->labels = areas.labels;
        picking->label = areas.items[i].label;
        picking->n = 0;
        if (ok && request->pick == PICK_LESIONS)
            ok = pick_strongest(picking, err) && add_windows(out, source, picking, i + 1, err);
    }
    picking->labels = NULL;
    picking->n = 0;
    lesion_areas_free(&areas);
    return ok;
}

/* Is the heatmap one of windows of this model? */
static bool check_heatmap(const struct subject_request *request, const struct heatmap_info *info,
                          const struct ctx *ctx, struct err *err)
{
    struct model_window window;
    char hash[MODEL_HASH_TEXT];
    const struct model *model = request->model;
    if (!model_window_of(model, &window, err) || !model_hash_text(model, hash, err))
        return false;
    if (window.window != info->window)
        return err_set(err, ERR_USAGE,
                       "%s: its heatmap is one of windows of %lld px, but %s scores windows of "
                       "%lld px; pass the model that made the heatmap",
                       info->slide, (long long)info->window, model->name, (long long)window.window);
    if (strcmp(hash, info->model_hash) != 0)
        console_warn(ctx->console,
                     "%s: its heatmap was made by %s (%s), not by %s alone (%s): scores differ",
                     info->slide, info->models, info->model_hash, model->name, hash);
    return true;
}

static bool add_slide(const struct subject_request *request, const char *folder, int32_t source,
                      const struct ctx *ctx, struct subjects *out, double *highest, struct err *err)
{
    struct window_state *state = out->state;
    struct heatmap *heatmap = NULL;
    int64_t top = request->top > 0 ? request->top : SUBJECTS_OF_SLIDE, before = out->n;
    struct picking picking = { .top = top, .highest = -INFINITY, .ctx = ctx };
    const char *class_name = request->model->config.class_names[out->class_index];
    picking.cells = calloc((size_t)top, sizeof *picking.cells);
    state->slides[source].folder = strdup(folder);
    bool ok = ((picking.cells && state->slides[source].folder) || err_memory(err, folder)) &&
              heatmap_open(folder, &heatmap, err);
    if (ok) {
        picking.heatmap = heatmap;
        picking.info = heatmap_info(heatmap);
        picking.min_score = heatmap_is_number(picking.info) ? -INFINITY : request->min_score;
        ok = heatmap_info_copy(picking.info, &state->slides[source].info, err) &&
             check_heatmap(request, picking.info, ctx, err) &&
             (heatmap_find_class(picking.info, class_name, &picking.class_index, err) ||
              err_prefix(err, picking.info->slide));
    }
    if (ok && (request->areas || request->pick == PICK_LESIONS))
        ok = add_lesions(request, &picking, source, out, err);
    if (ok && request->pick == PICK_STRONGEST)
        ok = pick_strongest(&picking, err) && add_windows(out, source, &picking, 0, err);
    if (ok && request->pick == PICK_RANDOM)
        ok =
            pick_random(&picking, request->seed, err) && add_windows(out, source, &picking, 0, err);
    if (ok && out->n == before)
        console_note(ctx->console, "%s: no %s of at least %g", picking.info->slide,
                     request->pick == PICK_LESIONS ? "lesion with a score" : "window with a score",
                     request->min_score);
    *highest = fmax(*highest, picking.highest);
    heatmap_close(heatmap);
    free(picking.cells);
    return ok;
}

static bool refuse_none(const struct subject_request *request, const struct subjects *subjects,
                        size_t slides, double highest, struct err *err)
{
    char most[60] = "";
    if (highest > -INFINITY)
        snprintf(most, sizeof most, "; the highest is %.4g", highest);
    return err_set(err, ERR_MISSING,
                   "%s: no %s of %zu slide%s has a score of '%s' of at least %g%s; lower "
                   "--min-score, or pass --pick random",
                   request->paths[0], request->pick == PICK_LESIONS ? "lesion" : "window", slides,
                   slides == 1 ? "" : "s",
                   request->model->config.class_names[subjects->class_index], request->min_score,
                   most);
}

bool subjects_find_windows(const struct subject_request *request, const struct ctx *ctx,
                           struct subjects *out, struct err *err)
{
    char **folders = NULL;
    size_t n = 0, unfinished = 0;
    double highest = -INFINITY;
    struct window_state *state = calloc(1, sizeof *state);
    if (!state)
        return err_memory(err, "the slides");
    *state = (struct window_state){ .access = { .config = &request->model->config,
                                                .stain_template = request->stain_template,
                                                .cache = request->cache,
                                                .results = request->results },
                                    .entered = -1 };
    out->kind = &windows;
    out->state = state;
    bool ok = heat_list(request->paths, request->n_paths, &folders, &n, &unfinished, err);
    state->slides = ok ? calloc(n + 1, sizeof *state->slides) : NULL;
    ok = ok && (state->slides || err_memory(err, "the slides"));
    state->n = ok ? n : 0;
    out->n_sources = (int32_t)state->n;
    if (ok && unfinished > 0)
        console_warn(ctx->console, "slides skipped because they have no heatmap yet: %zu",
                     unfinished);
    console_begin(ctx->console, "picking", (int64_t)n, "slides");
    for (size_t i = 0; ok && i < n; i++) {
        ok = add_slide(request, folders[i], (int32_t)i, ctx, out, &highest, err);
        console_advance(ctx->console, 1);
    }
    console_end(ctx->console);
    folder_names_free(folders, n);
    if (ok && out->n == 0)
        ok = refuse_none(request, out, n, highest, err);
    return ok;
}
