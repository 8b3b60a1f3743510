/* label.c: see label.h. */
#include "patch/label.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/pool.h"

#define PATCHES_PER_PIECE 64

const char *const label_rule_names[] = { "majority", "any", "center", "slide", "none", NULL };

/* What slide lists call a slide with tumour, and one without. */
static const char *known_class(const char *text)
{
    static const char *const words[][2] = { { "negative", "normal" }, { "benign", "normal" },
                                            { "tumour", "tumor" },    { "positive", "tumor" },
                                            { "malignant", "tumor" }, { "macro", "tumor" },
                                            { "micro", "tumor" },     { "itc", "tumor" } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i][0]) == 0)
            return words[i][1];
    return text;
}

bool label_of_text(const char *text, const struct class_map *map, int8_t *out)
{
    int place = class_map_place(map, text);
    if (place < 0)
        place = class_map_place(map, known_class(text));
    if (!*text || place >= 0) {
        *out = (int8_t)(*text ? place : PATCH_UNLABELED);
        return true;
    }
    char *end = NULL;
    long value = strtol(text, &end, 10),
         most = class_map_is_plain(map) ? INT8_MAX : class_map_n(map) - 1;
    if (end == text || *end || value < 0 || value > most)
        return false;
    *out = (int8_t)value;
    return true;
}

static bool column_target(const char *text, const char *column, struct patch_target *out,
                          struct err *err)
{
    out->kind = TARGET_COLUMN;
    int length = snprintf(out->name, sizeof out->name, "%s", column);
    if (length == 0 || strlen(text) >= sizeof out->text)
        return err_set(err, ERR_USAGE, "--target: '%.100s' does not name a column", text);
    snprintf(out->text, sizeof out->text, "%s", text);
    return true;
}

bool target_of_text(const char *text, const struct class_map *map, struct patch_target *out,
                    struct err *err)
{
    static const char coverage[] = "coverage:", column[] = "column:";
    *out = (struct patch_target){ .kind = TARGET_NONE };
    if (!text)
        return true;
    if (strncmp(text, column, strlen(column)) == 0)
        return column_target(text, text + strlen(column), out, err);
    if (strncmp(text, coverage, strlen(coverage)) != 0)
        return err_set(err, ERR_USAGE,
                       "--target: '%.100s' is neither coverage:CLASS nor coverage:tissue nor "
                       "column:NAME",
                       text);
    const char *what = text + strlen(coverage);
    bool tissue = strcmp(what, "tissue") == 0;
    out->place = class_map_place(map, what);
    if (!tissue && out->place < 0)
        return err_set(err, ERR_USAGE,
                       "--target: '%.100s': coverage is that of tissue or of a class; for regions "
                       "of another class, pass --class-map '%.100s=%.100s'",
                       text, what, what);
    out->kind = tissue ? TARGET_TISSUE : TARGET_CLASS;
    what = tissue ? what : class_map_class(map, out->place);
    snprintf(out->text, sizeof out->text, "coverage:%.100s", what);
    snprintf(out->name, sizeof out->name, "%.100s_coverage", what);
    return true;
}

/* What is in a tile, in its pixels. */
struct content {
    int64_t counts[CLASS_MOST]; /* drawn as each class */
    int64_t undrawn, all;
};

static void count_tile(const struct labeler *labeler, const struct raster *raster,
                       const struct patch *patch, struct content *out)
{
    double step = raster->downsample;
    int64_t side = labeler->tile, excluded = 0;
    int n = class_map_n(labeler->map);
    memset(out->counts, 0, (size_t)n * sizeof *out->counts);
    if (labeler->annotation)
        excluded = annotation_class_counts(
            labeler->annotation, (double)(patch->x + labeler->margin) * step,
            (double)(patch->y + labeler->margin) * step, step, side, side, out->counts);
    out->all = side * side;
    out->undrawn = out->all - excluded;
    for (int i = 0; i < n; i++)
        out->undrawn -= out->counts[i];
}

static int64_t class_px(const struct labeler *labeler, const struct content *content, int place)
{
    bool rest = place == class_map_unlabelled(labeler->map);
    return content->counts[place] + (rest ? content->undrawn : 0);
}

/* Of drawn classes; what nobody drew on counts only for a tile on which no other class is drawn: a
 * tile that is partly tumour is not normal. */
static int majority(const struct labeler *labeler, const struct content *content)
{
    const struct class_map *map = labeler->map;
    int rest = class_map_unlabelled(map), best = class_map_precedence(map, 0);
    int64_t others = 0;
    for (int rank = 0; rank < class_map_n(map); rank++) {
        int place = class_map_precedence(map, rank);
        if (content->counts[place] > content->counts[best])
            best = place;
        others += place == rest ? 0 : content->counts[place];
    }
    if (others == 0)
        return rest >= 0 && 2 * class_px(labeler, content, rest) >= content->all ? rest
                                                                                 : PATCH_UNLABELED;
    return 2 * content->counts[best] >= content->all ? best : PATCH_UNLABELED;
}

static int first_drawn(const struct labeler *labeler, const struct content *content)
{
    const struct class_map *map = labeler->map;
    for (int rank = 0; rank < class_map_n(map); rank++)
        if (content->counts[class_map_precedence(map, rank)] > 0)
            return class_map_precedence(map, rank);
    return content->undrawn > 0 ? class_map_unlabelled(map) : PATCH_UNLABELED;
}

static int at_centre(const struct labeler *labeler, const struct raster *raster,
                     const struct patch *patch)
{
    double step = raster->downsample, half = 0.5 * (double)labeler->tile * step;
    double x = (double)(patch->x + labeler->margin) * step;
    double y = (double)(patch->y + labeler->margin) * step;
    int place = labeler->annotation ? annotation_class_at(labeler->annotation, x + half, y + half)
                                    : ANNOTATION_UNDRAWN;
    return place == ANNOTATION_UNDRAWN    ? class_map_unlabelled(labeler->map)
           : place == ANNOTATION_EXCLUDED ? PATCH_UNLABELED
                                          : place;
}

static int label_of_tile(const struct labeler *labeler, const struct raster *raster,
                         const struct patch *patch, const struct content *content)
{
    if (labeler->rule == LABEL_SLIDE)
        return labeler->slide_label;
    if (!label_by_annotation(labeler))
        return PATCH_UNLABELED;
    return labeler->rule == LABEL_MAJORITY ? majority(labeler, content)
           : labeler->rule == LABEL_ANY    ? first_drawn(labeler, content)
                                           : at_centre(labeler, raster, patch);
}

static float fraction(const struct labeler *labeler, const struct content *content, int place)
{
    return (float)((double)class_px(labeler, content, place) / (double)content->all);
}

void label_patch(const struct labeler *labeler, const struct raster *raster, struct patch *patch)
{
    struct content content;
    int tumor = class_map_place(labeler->map, "tumor");
    count_tile(labeler, raster, patch, &content);
    patch->tumor = tumor < 0 ? 0 : (float)((double)content.counts[tumor] / (double)content.all);
    patch->label = (int8_t)label_of_tile(labeler, raster, patch, &content);
    if (labeler->target.kind == TARGET_TISSUE)
        patch->target = patch->tissue;
    else if (labeler->target.kind == TARGET_COLUMN)
        patch->target = labeler->slide_target;
    else if (labeler->target.kind == TARGET_CLASS && label_by_annotation(labeler))
        patch->target = fraction(labeler, &content, labeler->target.place);
    else
        patch->target = NAN;
}

struct label_job {
    const struct labeler *labeler;
    const struct raster *raster;
    struct patch_list *patches;
    float *fractions; /* NULL: labels */
};

static void put_fractions(const struct label_job *job, int64_t index)
{
    struct content content;
    int n = class_map_n(job->labeler->map);
    count_tile(job->labeler, job->raster, &job->patches->items[index], &content);
    for (int c = 0; c < n; c++)
        job->fractions[index * n + c] = fraction(job->labeler, &content, c);
}

static bool label_piece(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct label_job *job = arg;
    int64_t end = (index + 1) * PATCHES_PER_PIECE;
    end = end < job->patches->n ? end : job->patches->n;
    for (int64_t i = index * PATCHES_PER_PIECE; i < end; i++)
        if (job->fractions)
            put_fractions(job, i);
        else
            label_patch(job->labeler, job->raster, &job->patches->items[i]);
    return true;
}

bool label_list(const struct labeler *labeler, const struct raster *raster,
                struct patch_list *patches, const struct ctx *ctx, struct err *err)
{
    struct label_job job = { labeler, raster, patches, NULL };
    int64_t pieces = (patches->n + PATCHES_PER_PIECE - 1) / PATCHES_PER_PIECE;
    return pool_for(ctx->pool, pieces, label_piece, &job, ctx->stop, err);
}

bool label_fractions(const struct labeler *labeler, const struct raster *raster,
                     const struct patch_list *patches, float *out, const struct ctx *ctx,
                     struct err *err)
{
    struct patch_list same = *patches;
    struct label_job job = { labeler, raster, &same, out };
    int64_t pieces = (patches->n + PATCHES_PER_PIECE - 1) / PATCHES_PER_PIECE;
    return pool_for(ctx->pool, pieces, label_piece, &job, ctx->stop, err);
}
