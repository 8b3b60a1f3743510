/* evaluate.c: the sets, and every comparison of two of them (evaluate.h). */
#include "likeness/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/rng.h"
#include "likeness/features.h"
#include "likeness/frechet.h"
#include "train/config.h"

#define KERNEL_SUBSETS 50
#define KERNEL_MOST 500 /* patches of a subset */

const char *comparison_title(enum comparison_kind kind)
{
    static const char *const titles[] = { [SYNTHETIC_AND_REAL] = "synthetic against real",
                                          [REAL_HALVES] = "real: two random halves",
                                          [SYNTHETIC_AND_TRAIN] = "synthetic against training",
                                          [TRAIN_AND_REAL] = "training against real" };
    return titles[kind];
}

const char *evaluate_feature(const struct evaluate_request *request, int64_t column, char text[64])
{
    if (!request->model_name)
        return likeness_features[column].name;
    snprintf(text, 64, "channel %lld", (long long)column);
    return text;
}

/* --- classes --- */

/* The names of the option as a setting of the config; the rest of the code knows them from there.
 */
static bool find_classes(const struct evaluate_request *request, struct evaluation *out,
                         struct err *err)
{
    struct train_config config = { 0 };
    if (!config_read(NULL, NULL, 0, &config, err))
        return false;
    bool ok = true;
    if (request->classes) {
        char list[512];
        const struct config_key *key = config_key_at("classes");
        snprintf(list, sizeof list, "[%s]", request->classes);
        ok = config_set(&config, key, list, "--classes", err);
    } else {
        /* adopted from the first store, of the real ones if any is of those */
        struct texts none[] = { config.data.train, config.data.val };
        config.data.train =
            (struct texts){ (char **)request->paths[SET_REAL], request->n_paths[SET_REAL] };
        config.data.val = (struct texts){ (char **)request->paths[SET_SYNTHETIC],
                                          request->n_paths[SET_SYNTHETIC] };
        ok = config_adopt_classes(&config, err);
        config.data.train = none[0];
        config.data.val = none[1];
    }
    if (ok) {
        out->classes = config.classes.items;
        out->n_classes = (int64_t)config.classes.n;
        config.classes = (struct texts){ 0 };
    }
    config_free(&config);
    return ok;
}

/* --- sets --- */

static bool check_set(const struct patch_set *set, const char *path, const struct ctx *ctx,
                      struct err *err)
{
    if (set->other_size > 0)
        console_warn(ctx->console,
                     "%s: %lld of %lld patches are not of the usual size and are "
                     "omitted",
                     path, (long long)set->other_size, (long long)(set->n + set->other_size));
    return set->n >= EVALUATE_LEAST ||
           err_set(err, ERR_MISSING, "%s: %lld patches are too few to compare; %d are needed", path,
                   (long long)set->n, EVALUATE_LEAST);
}

static bool check_sizes(const struct evaluation *evaluation, int set, const char *path,
                        struct err *err)
{
    const struct patch_set *made = &evaluation->sets[SET_SYNTHETIC], *own = &evaluation->sets[set];
    if (own->width == made->width && own->height == made->height)
        return true;
    return err_set(err, ERR_USAGE,
                   "%s: patches have %lld x %lld px, but the synthetic ones %lld x %lld; pass "
                   "--resize-px %lld to compare both at one size",
                   path, (long long)own->width, (long long)own->height, (long long)made->width,
                   (long long)made->height,
                   (long long)(own->width < made->width ? own->width : made->width));
}

static bool read_sets(const struct evaluate_request *request, const struct ctx *ctx,
                      struct evaluation *out, struct err *err)
{
    static const char *const labels[] = { "synthetic patches", "real patches", "training patches" };
    struct patch_set_options options = request->options;
    options.classes = (const char *const *)out->classes;
    options.n_classes = out->n_classes;
    out->has_train = request->n_paths[SET_TRAIN] > 0;
    for (int k = 0; k < EVALUATE_SETS;
         k++) { /* the synthetic ones first: others are shrunk to them */
        struct patch_set *set = &out->sets[k];
        if (request->n_paths[k] == 0)
            continue;
        const char *path = request->paths[k][0];
        if (!patch_set_read(request->paths[k], request->n_paths[k], &options, labels[k], ctx, set,
                            err) ||
            !check_set(set, path, ctx, err) || !check_sizes(out, k, path, err))
            return false;
        if (k == SET_SYNTHETIC && set->width == set->height)
            options.shrink_px = set->width;
        else if (options.resize_px == 0 && set->stored_width != set->width)
            console_note(ctx->console,
                         "%s: patches of %lld x %lld px are shrunk to %lld, as the synthetic ones",
                         path, (long long)set->stored_width, (long long)set->stored_height,
                         (long long)set->width);
    }
    return true;
}

/* --- classes as frequent as in the real set --- */

/* Patches of every class; false if some have none. */
static bool count_classes(const struct patch_set *set, int64_t n_classes, int64_t *counts)
{
    for (int64_t i = 0; i < set->n; i++) {
        if (set->labels[i] < 0 || set->labels[i] >= n_classes)
            return false;
        counts[set->labels[i]]++;
    }
    return true;
}

/* How many of every class are kept: as many as can be. wanted [n_classes]; false: not possible, or
 * too few would be left. */
static bool want_classes(const struct evaluation *evaluation, int64_t *wanted)
{
    int64_t n = evaluation->n_classes, left = 0;
    int64_t *real = calloc(2 * (size_t)n + 1, sizeof *real), *made = real + n;
    double share = INFINITY;
    bool ok = real && count_classes(&evaluation->sets[SET_REAL], n, real) &&
              count_classes(&evaluation->sets[SET_SYNTHETIC], n, made);
    for (int64_t c = 0; ok && c < n; c++)
        if (real[c] > 0)
            share = fmin(share, (double)made[c] / (double)real[c]);
    for (int64_t c = 0; ok && c < n; c++)
        left += wanted[c] = (int64_t)(share * (double)real[c] + 1e-9);
    free(real);
    return ok && left >= EVALUATE_LEAST;
}

static bool has_classes(const struct patch_set *set)
{
    int64_t i = 0;
    while (i < set->n && set->labels[i] < 0)
        i++;
    return i < set->n;
}

static bool match_classes(const struct evaluate_request *request, const struct ctx *ctx,
                          struct evaluation *out, struct err *err)
{
    const struct patch_set *set = &out->sets[SET_SYNTHETIC];
    struct rows all = patch_set_rows(set);
    int64_t *wanted = calloc((size_t)out->n_classes + 1, sizeof *wanted), *order = NULL, n = 0;
    bool ok =
        wanted ? rows_draw(set->n, set->n, request->options.seed, rng_hash("classes"), &order, err)
               : err_memory(err, "the classes of patches");
    out->is_matched = ok && !request->as_is && want_classes(out, wanted);
    for (int64_t i = 0; ok && i < set->n; i++)
        if (!out->is_matched || wanted[set->labels[order[i]]]-- > 0)
            order[n++] = order[i];
    if (ok && !out->is_matched && !request->as_is && has_classes(set) &&
        has_classes(&out->sets[SET_REAL]))
        console_warn(ctx->console,
                     "the classes of the synthetic patches cannot be made as frequent "
                     "as those of the real ones: read the rows of the classes");
    ok = ok && rows_pick(&all, order, n, &out->matched, err);
    free(wanted);
    free(order);
    return ok;
}

/* --- comparisons --- */

/* The rows of a class, or all. *out->values is the caller's. */
static bool class_rows(const struct evaluation *evaluation, int which_set, int64_t class,
                       struct rows *out, struct err *err)
{
    const struct patch_set *set = &evaluation->sets[which_set];
    struct rows all = patch_set_rows(set);
    if (class < 0 && which_set == SET_SYNTHETIC)
        return rows_sample(&evaluation->matched, evaluation->matched.n, 0, 0, out, err);
    int64_t *which = malloc((size_t)(set->n + 1) * sizeof *which), n = 0;
    if (!which)
        return err_memory(err, "the classes of patches");
    for (int64_t i = 0; i < set->n; i++)
        if (class < 0 || set->labels[i] == class)
            which[n++] = i;
    bool ok = rows_pick(&all, which, n, out, err);
    free(which);
    return ok;
}

/* a is judged by b. */
static bool measure(const struct rows *a, const struct rows *b, uint64_t seed,
                    const struct ctx *ctx, struct set_comparison *out, struct err *err)
{
    int64_t m = a->n < b->n ? a->n : b->n;
    m = m < EVALUATE_MOST_PAIRS ? m : EVALUATE_MOST_PAIRS;
    struct rows some_a = { 0 }, some_b = { 0 };
    uint64_t stream = rng_hash("neighbours");
    out->n[0] = a->n;
    out->n[1] = b->n;
    out->n_neighbours = m;
    bool ok =
        frechet_distance(a, b, &out->frechet, err) &&
        frechet_infinity(a, b, seed, ctx, &out->frechet_infinity, err) &&
        kernel_distance_subsets(a, b, KERNEL_SUBSETS, KERNEL_MOST, seed, ctx, &out->kernel, err) &&
        rows_sample(a, m, seed, stream, &some_a, err) &&
        rows_sample(b, m, seed, stream + 1, &some_b, err) &&
        neighbours_score(&some_b, &some_a, EVALUATE_NEIGHBOURS, ctx, &out->neighbours, err) &&
        two_sample_test(a, b, EVALUATE_MOST_PAIRS, seed, ctx, &out->two_sample, err);
    free((double *)some_a.values);
    free((double *)some_b.values);
    return ok;
}

/* Two halves of rows that were put in a random order. */
static bool halve(const struct rows *rows, uint64_t seed, struct rows halves[2], struct err *err)
{
    struct rows mixed = { 0 };
    if (!rows_sample(rows, rows->n, seed, rng_hash("halves"), &mixed, err))
        return false;
    int64_t half = rows->n / 2;
    halves[0] = (struct rows){ mixed.values, half, rows->d };
    halves[1] = (struct rows){ mixed.values + half * rows->d, rows->n - half, rows->d };
    return true;
}

/* Adds a comparison, if both have enough patches of the class. */
static bool compare(const struct evaluate_request *request, enum comparison_kind kind,
                    int64_t class, const struct ctx *ctx, struct evaluation *out, struct err *err)
{
    static const int sides[][2] = { [SYNTHETIC_AND_REAL] = { SET_SYNTHETIC, SET_REAL },
                                    [REAL_HALVES] = { SET_REAL, SET_REAL },
                                    [SYNTHETIC_AND_TRAIN] = { SET_SYNTHETIC, SET_TRAIN },
                                    [TRAIN_AND_REAL] = { SET_TRAIN, SET_REAL } };
    struct set_comparison *to = &out->comparisons[out->n];
    struct rows rows[2] = { { 0 }, { 0 } }, halves[2];
    uint64_t seed = request->options.seed;
    *to = (struct set_comparison){ .kind = kind, .class_index = class };
    bool ok = class_rows(out, sides[kind][0], class, &rows[0], err) &&
              class_rows(out, sides[kind][1], class, &rows[1], err);
    bool enough = ok && rows[0].n >= EVALUATE_LEAST && rows[1].n >= EVALUATE_LEAST;
    if (enough && kind == REAL_HALVES) {
        ok = halve(&rows[0], seed, halves, err) &&
             measure(&halves[0], &halves[1], seed, ctx, to, err);
        if (ok)
            free((double *)halves[0].values);
    } else if (enough) {
        ok = measure(&rows[0], &rows[1], seed, ctx, to, err);
    }
    out->n += ok && enough;
    free((double *)rows[0].values);
    free((double *)rows[1].values);
    return ok;
}

static bool compare_all(const struct evaluate_request *request, const struct ctx *ctx,
                        struct evaluation *out, struct err *err)
{
    static const enum comparison_kind kinds[] = { SYNTHETIC_AND_REAL, REAL_HALVES,
                                                  SYNTHETIC_AND_TRAIN, TRAIN_AND_REAL };
    int64_t n_kinds = out->has_train ? 4 : 2, total = n_kinds * (out->n_classes + 1);
    out->comparisons = calloc((size_t)total, sizeof *out->comparisons);
    if (!out->comparisons)
        return err_memory(err, "the comparisons");
    console_begin(ctx->console, "comparisons", total, "comparisons");
    bool ok = true;
    for (int64_t class = -1; ok && class < out->n_classes; class ++)
        for (int64_t k = 0; ok && k < n_kinds; k++) {
            ok = ctx_stopped(ctx) ? err_stopped(err)
                                  : compare(request, kinds[k], class, ctx, out, err);
            console_advance(ctx->console, 1);
        }
    console_end(ctx->console);
    return ok;
}

/* --- features one by one --- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The column of a set, sorted; the caller's. */
static double *sorted_column(const struct rows *set, int64_t column, double *mean, double *std)
{
    double *values = malloc((size_t)set->n * sizeof *values), n = (double)set->n, squares = 0;
    *mean = 0;
    for (int64_t i = 0; values && i < set->n; i++) {
        values[i] = set->values[i * set->d + column];
        *mean += values[i] / n;
    }
    for (int64_t i = 0; values && i < set->n; i++)
        squares += (values[i] - *mean) * (values[i] - *mean) / n;
    *std = sqrt(squares);
    if (values)
        qsort(values, (size_t)set->n, sizeof *values, by_value);
    return values;
}

static double kolmogorov(const double *a, int64_t n, const double *b, int64_t m)
{
    double most = 0;
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        double at = a[i] < b[j] ? a[i] : b[j];
        while (i < n && a[i] <= at)
            i++;
        while (j < m && b[j] <= at)
            j++;
        most = fmax(most, fabs((double)i / (double)n - (double)j / (double)m));
    }
    return most;
}

static int by_shift(const void *a, const void *b)
{
    const struct feature_shift *x = a, *y = b;
    if (x->ks != y->ks)
        return x->ks > y->ks ? -1 : 1;
    return x->column < y->column ? -1 : 1;
}

static bool find_shifts(struct evaluation *out, struct err *err)
{
    struct rows real = patch_set_rows(&out->sets[SET_REAL]), made = out->matched;
    int64_t d = real.d;
    out->shifts = calloc((size_t)d, sizeof *out->shifts);
    bool ok = out->shifts || err_memory(err, "the features");
    for (int64_t c = 0; ok && c < d; c++) {
        struct feature_shift *shift = &out->shifts[c];
        double *a = sorted_column(&made, c, &shift->mean[0], &shift->std[0]);
        double *b = sorted_column(&real, c, &shift->mean[1], &shift->std[1]);
        ok = (a && b) || err_memory(err, "the features");
        shift->column = c;
        if (ok)
            shift->ks = kolmogorov(a, made.n, b, real.n);
        free(a);
        free(b);
    }
    if (ok)
        qsort(out->shifts, (size_t)d, sizeof *out->shifts, by_shift);
    return ok;
}

/* --- all --- */

static bool find_transfer(struct evaluation *out, struct err *err)
{
    static const int from[] = { SET_SYNTHETIC, SET_TRAIN };
    struct rows test = patch_set_rows(&out->sets[SET_REAL]);
    for (int i = 0; i < 2; i++) {
        const struct patch_set *set = &out->sets[from[i]];
        struct rows train = patch_set_rows(set);
        out->transfer[i] = NAN;
        if (set->n > 0 && !transfer_auc(&train, set->labels, &test, out->sets[SET_REAL].labels,
                                        out->n_classes, &out->transfer[i], err))
            return false;
    }
    return true;
}

bool evaluate_run(const struct evaluate_request *request, const struct ctx *ctx,
                  struct evaluation *out, struct err *err)
{
    *out = (struct evaluation){ 0 };
    return find_classes(request, out, err) && read_sets(request, ctx, out, err) &&
           match_classes(request, ctx, out, err) && compare_all(request, ctx, out, err) &&
           find_shifts(out, err) && find_transfer(out, err);
}

void evaluation_free(struct evaluation *evaluation)
{
    for (int i = 0; i < EVALUATE_SETS; i++)
        patch_set_free(&evaluation->sets[i]);
    for (int64_t i = 0; i < evaluation->n_classes; i++)
        free(evaluation->classes[i]);
    free(evaluation->classes);
    free((double *)evaluation->matched.values);
    free(evaluation->comparisons);
    free(evaluation->shifts);
    *evaluation = (struct evaluation){ 0 };
}
