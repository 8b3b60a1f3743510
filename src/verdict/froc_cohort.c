/* froc_cohort.c: see froc_cohort.h. */
#include "verdict/froc_cohort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/folder.h"
#include "base/console.h"
#include "verdict/truth_mask.h"
#include "base/text.h"

struct tally {
    const char *folder;
    const struct truth_list *truth;
    const struct froc_rules *rules;
    bool allow_missing;
    struct froc_cohort *out;
    struct froc_data data;
};

static bool read_truth(const struct truth_entry *entry, const struct class_map *class_map,
                       const struct froc_rules *given, struct froc_truth *out, struct err *err)
{
    const char *path = entry->path;
    struct froc_rules rules = *given;
    if (!(rules.mpp > 0))
        rules.mpp = entry->mpp > 0 ? entry->mpp : froc_camelyon16().mpp;
    struct truth_mask mask;
    /* The box must contain everything that joins, with one free pixel around it. */
    int64_t margin = (int64_t)ceil(rules.join_um / (rules.mpp * rules.downsample * 2)) + 2;
    if (!truth_mask_read(path, entry->slide, class_map, rules.downsample, margin, &mask, err))
        return false;
    bool ok = froc_truth_of_mask(&mask.mask, &rules, out, err) || err_prefix(err, path);
    out->origin_x = mask.origin_x, out->origin_y = mask.origin_y;
    image_free(&mask.mask);
    return ok;
}

/* entry NULL: a slide without a file in the truth folder, so without tumour. */
static bool add_slide(struct tally *tally, const char *file, const struct truth_entry *entry,
                      struct err *err)
{
    bool tumour = entry && entry->path;
    struct lesion_list calls = { 0 };
    struct froc_truth truth = { 0 };
    struct froc_slide slide = { 0 };
    char *path = text_format("%s/%s", tally->folder, file);
    bool ok = (path || err_memory(err, file)) && lesions_read(path, &calls, err) &&
              (!tumour || read_truth(entry, tally->truth->class_map, tally->rules, &truth, err)) &&
              froc_add(&tally->data, tumour ? &truth : NULL, &calls, &slide, err);
    if (ok) {
        tally->out->calls += slide.calls;
        tally->out->ignored += slide.ignored;
        tally->out->with_tumour += truth.counted > 0;
        tally->out->isolated += truth.n - truth.counted;
    }
    lesions_free(&calls);
    froc_truth_free(&truth);
    free(path);
    return ok;
}

/* Every slide of the truth has a list of lesions; names are sorted. */
static bool check_truth(struct tally *tally, char **names, size_t n, struct err *err)
{
    for (size_t i = 0; i < tally->truth->n; i++) {
        const char *slide = tally->truth->entries[i].slide;
        bool there = false;
        for (size_t k = 0; k < n && !there; k++)
            there = strcmp(names[k], slide) == 0;
        if (there)
            continue;
        if (!tally->allow_missing)
            return err_set(
                err, ERR_MISSING,
                "%s: slide '%s' has truth, but there is no %s/%s.csv; write an empty list for a "
                "slide without lesions, or pass --allow-missing to skip the slide",
                tally->truth->source, slide, tally->folder, slide);
        tally->out->left_out++;
    }
    return true;
}

static bool add_all(struct tally *tally, char **names, size_t n, const struct ctx *ctx,
                    struct err *err)
{
    size_t in_common = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const struct truth_entry *entry;
        char *file = text_format("%s.csv", names[i]);
        if (!file)
            return err_memory(err, tally->folder);
        if (ctx_stopped(ctx))
            ok = err_stopped(err);
        entry = truth_list_find(tally->truth, names[i]);
        in_common += entry != NULL;
        if (ok && (entry || !tally->truth->lists_all))
            ok = add_slide(tally, file, entry, err);
        else if (ok && !tally->allow_missing)
            ok = err_set(
                err, ERR_MISSING,
                "%s/%s: slide '%s' is not in %s; add it there, or pass --allow-missing to skip it",
                tally->folder, file, names[i], tally->truth->source);
        else
            tally->out->left_out++;
        console_advance(ctx->console, 1);
        free(file);
    }
    if (ok && in_common == 0)
        ok = err_set(err, ERR_MISSING, "%s and %s have no slide in common", tally->folder,
                     tally->truth->source);
    return ok;
}

bool froc_of_folder(const char *folder, const struct truth_list *truth,
                    const struct froc_rules *rules, bool allow_missing, const struct ctx *ctx,
                    struct froc_cohort *out, struct err *err)
{
    static const char *const endings[] = { ".csv", NULL };
    struct tally tally = { folder, truth, rules, allow_missing, out, { 0 } };
    char **names = NULL;
    size_t n = 0;
    *out = (struct froc_cohort){ 0 };
    if (!folder_names(folder, endings, &names, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        names[i][strlen(names[i]) - 4] = 0;
    console_begin(ctx->console, "froc", (int64_t)n, "slides");
    bool ok =
        (n > 0 || err_set(err, ERR_MISSING,
                          "%s: contains no lesion lists (<slide>.csv with score,x,y)", folder)) &&
        check_truth(&tally, names, n, err) && add_all(&tally, names, n, ctx, err);
    console_end(ctx->console);
    ok = ok && froc_compute(&tally.data, rules->ties, &out->froc, err);
    out->slides = tally.data.slides, out->lesions = tally.data.lesions;
    froc_data_free(&tally.data);
    folder_names_free(names, n);
    return ok;
}
