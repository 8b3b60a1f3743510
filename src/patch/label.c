/* label.c: see label.h. */
#include "patch/label.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/pool.h"

#define PATCHES_PER_PIECE 64

const char *const label_rule_names[] = { "majority", "any", "center", "slide", "none", NULL };

bool label_of_text(const char *text, int8_t *out)
{
    static const struct {
        const char *word;
        int8_t label;
    } words[] = { { "", PATCH_UNLABELED }, { "normal", 0 }, { "negative", 0 }, { "benign", 0 },
                  { "tumor", 1 },          { "tumour", 1 }, { "positive", 1 }, { "malignant", 1 },
                  { "macro", 1 },          { "micro", 1 },  { "itc", 1 } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i].word) == 0) {
            *out = words[i].label;
            return true;
        }
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > INT8_MAX)
        return false;
    *out = (int8_t)value;
    return true;
}

static const struct {
    const char *text, *name;
} targets[] = { [TARGET_NONE] = { "", NULL },
                [TARGET_TUMOR] = { "coverage:tumor", "tumor_coverage" },
                [TARGET_TISSUE] = { "coverage:tissue", "tissue_coverage" } };

const char *target_text(enum patch_target target)
{
    return targets[target].text;
}

const char *target_name(enum patch_target target)
{
    return targets[target].name;
}

bool target_of_text(const char *text, enum patch_target *out, struct err *err)
{
    *out = TARGET_NONE;
    if (!text)
        return true;
    for (int i = TARGET_TUMOR; i <= TARGET_TISSUE; i++)
        if (strcmp(text, targets[i].text) == 0)
            *out = (enum patch_target)i;
    if (*out != TARGET_NONE)
        return true;
    if (strncmp(text, "coverage:", strlen("coverage:")) == 0)
        return err_set(err, ERR_USAGE,
                       "--target: '%.100s': coverage is that of tumor or tissue; for regions of "
                       "another class, pass --class-map '%.100s=tumor' and --target coverage:tumor",
                       text, text + strlen("coverage:"));
    return err_set(err, ERR_USAGE,
                   "--target: '%.100s' is neither coverage:tumor nor "
                   "coverage:tissue",
                   text);
}

static int8_t label_of_share(enum label_rule rule, int64_t tumor, int64_t all, bool center)
{
    switch (rule) {
    case LABEL_MAJORITY:
        return tumor == 0 ? 0 : 2 * tumor >= all ? 1 : PATCH_UNLABELED;
    case LABEL_ANY:
        return tumor > 0;
    case LABEL_CENTER:
        return center;
    default:
        return PATCH_UNLABELED;
    }
}

void label_patch(const struct labeler *labeler, const struct raster *raster, struct patch *patch)
{
    double step = raster->downsample;
    double x = (double)(patch->x + labeler->margin) * step;
    double y = (double)(patch->y + labeler->margin) * step;
    int64_t side = labeler->tile, tumor = 0;
    bool center = false;
    if (labeler->annotation) {
        double half = 0.5 * (double)side * step;
        tumor = annotation_count(labeler->annotation, x, y, step, side, side);
        center = annotation_contains(labeler->annotation, x + half, y + half);
    }
    patch->tumor = (float)((double)tumor / (double)(side * side));
    if (labeler->rule == LABEL_SLIDE)
        patch->label = labeler->slide_label;
    else if (label_by_annotation(labeler))
        patch->label = label_of_share(labeler->rule, tumor, side * side, center);
    else
        patch->label = PATCH_UNLABELED;
    if (labeler->target == TARGET_TISSUE)
        patch->target = patch->tissue;
    else
        patch->target = label_by_annotation(labeler) ? patch->tumor : NAN;
}

struct label_job {
    const struct labeler *labeler;
    const struct raster *raster;
    struct patch_list *patches;
};

static bool label_piece(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct label_job *job = arg;
    int64_t end = (index + 1) * PATCHES_PER_PIECE;
    end = end < job->patches->n ? end : job->patches->n;
    for (int64_t i = index * PATCHES_PER_PIECE; i < end; i++)
        label_patch(job->labeler, job->raster, &job->patches->items[i]);
    return true;
}

bool label_list(const struct labeler *labeler, const struct raster *raster,
                struct patch_list *patches, const struct ctx *ctx, struct err *err)
{
    struct label_job job = { labeler, raster, patches };
    int64_t pieces = (patches->n + PATCHES_PER_PIECE - 1) / PATCHES_PER_PIECE;
    return pool_for(ctx->pool, pieces, label_piece, &job, ctx->stop, err);
}
