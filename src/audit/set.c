/* set.c: see set.h. */
#include <stdlib.h>
#include <string.h>
#include "audit/set.h"
#include "base/console.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "train/model_patches.h"

#define STREAM_DRAW 0x6175646974 /* random numbers of the choice of samples */
#define MOST_BYTES ((int64_t)1 << 30)
#define MOST_FILES 4096

struct candidate {
    int64_t sample;
    uint64_t key; /* random: the smallest are taken */
    bool member;
};

/* A name in a list. */
struct listed {
    const char *name;
    bool member;
};

struct opening {
    const struct set_request *request;
    const struct ctx *ctx;
    struct model_patches patches[2]; /* of members, of others; with lists the first has all */
    struct csv lists[2];             /* members.csv, others.csv */
    struct listed *listed;
    size_t n_listed;
    struct candidate *candidates[2];
    int64_t n_candidates[2];
    uint64_t last_key; /* of those that are taken */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* --- lists --- */

static bool read_list(const char *folder, const char *name, struct csv *out, struct err *err)
{
    char *path = text_format("%s/%s", folder, name);
    if (!path)
        return err_memory(err, folder);
    bool ok = file_exists(path) ||
              err_set(err, ERR_MISSING,
                      "%s: not there; train with --set privacy.hold_out=0.5, or name the samples "
                      "with --members and --others",
                      path);
    ok = ok && csv_read(path, out, err);
    if (ok && csv_column(out, "sample") < 0)
        ok = err_set(err, ERR_FORMAT, "%s: no column 'sample'", path);
    free(path);
    return ok;
}

/* Both lists by name. */
static bool sort_lists(struct opening *o, struct err *err)
{
    o->listed = calloc(o->lists[0].n_rows + o->lists[1].n_rows + 1, sizeof *o->listed);
    if (!o->listed)
        return err_memory(err, "the lists");
    for (int l = 0; l < 2; l++)
        for (size_t r = 0; r < o->lists[l].n_rows; r++)
            o->listed[o->n_listed++] =
                (struct listed){ csv_cell(&o->lists[l], r, csv_column(&o->lists[l], "sample")),
                                 l == 0 };
    qsort(o->listed, o->n_listed, sizeof *o->listed, by_name);
    return true;
}

/* The files that the lists name, each once; the texts belong to the lists. */
static bool list_files(const struct opening *o, char **files, size_t *n, struct err *err)
{
    *n = 0;
    for (int l = 0; l < 2; l++) {
        int column = csv_column(&o->lists[l], "file");
        if (column < 0)
            return err_set(err, ERR_FORMAT, "%s: no column 'file'", o->lists[l].path);
        for (size_t r = 0; r < o->lists[l].n_rows; r++) {
            char *file = o->lists[l].cells[r * o->lists[l].n_columns + (size_t)column];
            if ((*n > 0 && strcmp(files[*n - 1], file) == 0) ||
                (*n > 0 && bsearch(&file, files, *n, sizeof *files, by_text)))
                continue;
            if (*n == MOST_FILES)
                return err_set(err, ERR_USAGE, "%s: more than %d files", o->lists[l].path,
                               MOST_FILES);
            files[(*n)++] = file;
            qsort(files, *n, sizeof *files, by_text);
        }
    }
    return true;
}

/* Patches as a model of this config takes them. */
static bool open_patches(struct opening *o, const struct model_config *config, char *const *paths,
                         size_t n, int p, struct err *err)
{
    char name[] = "the model";
    const struct model model = { .config = *config, .name = name };
    return model_patches_open(&model, paths, n, false, o->ctx, &o->patches[p], err);
}

static bool open_lists(struct opening *o, const struct model_config *model, struct err *err)
{
    const char *folder = o->request->folder;
    size_t n_files = 0;
    char **files = calloc(MOST_FILES, sizeof *files);
    bool ok = files || err_memory(err, "the lists");
    ok = ok && read_list(folder, "members.csv", &o->lists[0], err) &&
         read_list(folder, "others.csv", &o->lists[1], err) && sort_lists(o, err) &&
         list_files(o, files, &n_files, err);
    for (size_t i = 0; ok && i < n_files; i++)
        if (!file_exists(files[i]))
            ok = err_set(err, ERR_MISSING,
                         "%s: the training data are not there; run this in the folder where the "
                         "training ran, or use --members and --others",
                         files[i]);
    ok = ok && open_patches(o, model, files, n_files, 0, err);
    free(files);
    return ok;
}

static bool open_paths(struct opening *o, const struct model_config *model, struct err *err)
{
    const struct set_request *r = o->request;
    return open_patches(o, model, r->members, r->n_members, 0, err) &&
           open_patches(o, model, r->others, r->n_others, 1, err);
}

/* --- the choice --- */

/* Every sample of patches p that is listed, or that was named by its path. */
static bool find_candidates(struct opening *o, int p, bool lists, struct err *err)
{
    const struct dataset *dataset = &o->patches[p].dataset;
    o->candidates[p] = calloc((size_t)dataset->n_samples + 1, sizeof *o->candidates[p]);
    if (!o->candidates[p])
        return err_memory(err, "the samples");
    for (int64_t i = 0; i < dataset->n_samples; i++) {
        struct rng rng = rng_new(o->request->seed, STREAM_DRAW + (uint64_t)p, (uint64_t)i);
        struct candidate candidate = { .sample = i, .key = rng_u64(&rng), .member = p == 0 };
        if (lists) {
            char *name = dataset_sample_name(dataset, i);
            struct listed wanted = { .name = name };
            const struct listed *found =
                name ? bsearch(&wanted, o->listed, o->n_listed, sizeof *o->listed, by_name) : NULL;
            free(name);
            if (!found)
                continue;
            candidate.member = found->member;
        }
        o->candidates[p][o->n_candidates[p]++] = candidate;
    }
    return true;
}

/* The largest key of the `most` smallest, of both kinds together: the choice does not know which
 * is a member. */
static bool choose(struct opening *o, int64_t most, struct err *err)
{
    int64_t n = o->n_candidates[0] + o->n_candidates[1], at = 0;
    uint64_t *keys = malloc((size_t)(n + 1) * sizeof *keys);
    if (!keys)
        return err_memory(err, "the samples");
    for (int p = 0; p < 2; p++)
        for (int64_t i = 0; i < o->n_candidates[p]; i++)
            keys[at++] = o->candidates[p][i].key;
    qsort(keys, (size_t)n, sizeof *keys, by_key);
    o->last_key = n > most ? keys[most - 1] : UINT64_MAX;
    free(keys);
    return true;
}

/* --- the pixels --- */

/* Reads the chosen samples of patches p. */
static bool load(struct opening *o, int p, bool labels, struct audit_set *set, int64_t *bytes,
                 struct err *err)
{
    const struct model_patches *patches = &o->patches[p];
    const struct dataset *dataset = &patches->dataset;
    uint8_t *group = NULL;
    int32_t origin = -1, number = -1;
    bool ok = true;
    for (int64_t i = 0; ok && i < o->n_candidates[p] && *bytes < MOST_BYTES; i++) {
        const struct candidate *c = &o->candidates[p][i];
        int32_t label = dataset_label(dataset, c->sample);
        if (c->key > o->last_key)
            continue;
        if (labels && label == PATCH_UNLABELED) {
            set->unlabelled++;
            continue;
        }
        if (ctx_stopped(o->ctx))
            ok = err_stopped(err);
        if (ok && dataset_in_group(dataset, c->sample) &&
            (!group || origin != dataset_origin(dataset, c->sample) ||
             number != dataset_group(dataset, c->sample))) {
            free(group);
            origin = dataset_origin(dataset, c->sample);
            number = dataset_group(dataset, c->sample);
            group = malloc((size_t)dataset_group_bytes(dataset, c->sample));
            ok = group ? dataset_read_group(dataset, c->sample, group, err)
                       : err_memory(err, "a group of patches");
        }
        struct image *image = &set->images[set->n];
        ok = ok && dataset_read(dataset, c->sample, group, image, err) &&
             stain_need_patch(&patches->stain, image, err) &&
             ((set->names[set->n] = dataset_sample_name(dataset, c->sample)) ||
              err_memory(err, "a name"));
        set->member[set->n] = c->member;
        set->label[set->n] = label;
        set->n_members += c->member;
        *bytes += (int64_t)image_bytes(image);
        set->n++;
        console_advance(o->ctx->console, 1);
    }
    free(group);
    return ok;
}

/* Does any patient have members and others? */
static bool share_patients(const struct opening *o, bool *shared, struct err *err)
{
    int32_t n = o->patches[0].dataset.n_patients;
    bool *has = calloc(2 * (size_t)n + 2, sizeof *has); /* members, others of the first patches */
    const char **names = calloc((size_t)n + 1, sizeof *names);
    bool ok = (has && names) || err_memory(err, "the patients");
    const struct dataset *first = &o->patches[0].dataset;
    for (int64_t i = 0; ok && i < o->n_candidates[0]; i++) {
        int32_t patient = dataset_range(first, o->candidates[0][i].sample).patient;
        has[2 * patient + !o->candidates[0][i].member] = true;
    }
    for (int32_t p = 0; ok && p < n; p++) {
        *shared = *shared || (has[2 * p] && has[2 * p + 1]);
        names[p] = first->patients[p];
    }
    if (ok && n > 0)
        qsort(names, (size_t)n, sizeof *names, by_text);
    for (int32_t p = 0; ok && p < o->patches[1].dataset.n_patients; p++)
        *shared = *shared || (n > 0 && bsearch(&o->patches[1].dataset.patients[p], names, (size_t)n,
                                               sizeof *names, by_text) != NULL);
    free(has);
    free(names);
    return ok;
}

/* Is a sample both a member and not? */
static bool refuse_both(const struct audit_set *set, struct err *err)
{
    const char **names = malloc((size_t)set->n * sizeof *names);
    if (!names)
        return err_memory(err, "the samples");
    for (int64_t i = 0; i < set->n; i++)
        names[i] = set->names[i];
    qsort(names, (size_t)set->n, sizeof *names, by_text);
    bool ok = true;
    for (int64_t i = 1; ok && i < set->n; i++)
        if (strcmp(names[i], names[i - 1]) == 0)
            ok = err_set(err, ERR_USAGE, "%s: is in --members and in --others, or twice in one",
                         names[i]);
    free(names);
    return ok;
}

static bool load_all(struct opening *o, bool lists, bool labels, struct audit_set *set,
                     struct err *err)
{
    int64_t most = o->request->most, bytes = 0;
    size_t room = (size_t)most + 1;
    set->images = calloc(room, sizeof *set->images);
    set->member = calloc(room, sizeof *set->member);
    set->label = calloc(room, sizeof *set->label);
    set->names = calloc(room, sizeof *set->names);
    if (!set->images || !set->member || !set->label || !set->names)
        return err_memory(err, "the samples");
    if (!choose(o, most, err) || !share_patients(o, &set->same_patients, err))
        return false;
    console_begin(o->ctx->console, "samples",
                  o->n_candidates[0] + o->n_candidates[1] < most
                      ? o->n_candidates[0] + o->n_candidates[1]
                      : most,
                  "patches");
    for (int p = 0; p < 2; p++)
        if (!load(o, p, labels, set, &bytes, err))
            return false;
    console_end(o->ctx->console);
    if (bytes >= MOST_BYTES)
        return err_set(err, ERR_USAGE,
                       "%lld samples do not fit into 1 GB; audit fewer of them with --samples",
                       (long long)most);
    if (set->n_members == 0 || set->n_members == set->n)
        return err_set(err, ERR_MISSING, "no %s found%s", set->n_members == 0 ? "member" : "other",
                       set->unlabelled > 0 ? " that has a class of the model" : "");
    if (!refuse_both(set, err))
        return false;
    double half = (double)set->n / 2, off = (double)set->n_members - half;
    set->coins =
        lists ? set->same_patients && off * off < 16 * (double)set->n / 4 : o->request->coins;
    return true;
}

static void close_opening(struct opening *o)
{
    for (int p = 0; p < 2; p++) {
        model_patches_free(&o->patches[p]);
        csv_free(&o->lists[p]);
        free(o->candidates[p]);
    }
    free(o->listed);
}

bool audit_set_open(const struct set_request *request, const struct model_config *model,
                    bool labels, const struct ctx *ctx, struct audit_set *out, struct err *err)
{
    struct opening o = { .request = request, .ctx = ctx };
    bool lists = request->n_members == 0;
    *out = (struct audit_set){ 0 };
    bool ok = lists ? open_lists(&o, model, err) : open_paths(&o, model, err);
    ok = ok && find_candidates(&o, 0, lists, err) && (lists || find_candidates(&o, 1, false, err));
    ok = ok && load_all(&o, lists, labels, out, err);
    close_opening(&o);
    return ok;
}

void audit_set_free(struct audit_set *set)
{
    for (int64_t i = 0; set->images && set->names && i < set->n; i++) {
        image_free(&set->images[i]);
        free(set->names[i]);
    }
    free(set->images);
    free(set->member);
    free(set->label);
    free(set->names);
    *set = (struct audit_set){ 0 };
}

bool audit_set_trained_on(const struct audit_set *set, const char *folder, bool *trained_on,
                          bool *listed, struct err *err)
{
    struct opening o = { 0 };
    char *path = text_format("%s/members.csv", folder);
    if (!path)
        return err_memory(err, folder);
    *listed = file_exists(path);
    bool ok =
        !*listed || (read_list(folder, "members.csv", &o.lists[0], err) && sort_lists(&o, err));
    for (int64_t i = 0; ok && i < set->n; i++) {
        struct listed wanted = { .name = set->names[i] };
        trained_on[i] =
            *listed && bsearch(&wanted, o.listed, o.n_listed, sizeof *o.listed, by_name);
    }
    close_opening(&o);
    free(path);
    return ok;
}
