/* dataset_origin.c: finds the samples of one path and reads their pixels (dataset.h). */
#include "train/dataset_origin.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"

#define MAX_OPEN_STORES 32
#define MAX_DEPTH 16

void origin_free(struct origin *origin)
{
    store_close(origin->store);
    free(origin->group_first);
    free(origin->places);
    free(origin->slide);
    if (origin->kind == ORIGIN_TAR)
        tar_close(&origin->tar);
    for (size_t i = 0; i < origin->n_files; i++)
        free(origin->files[i]);
    free(origin->files);
    slide_list_free(&origin->slides);
    csv_free(&origin->table);
    free(origin->path);
}

struct origin *origin_new(struct dataset *dataset, enum origin_kind kind, const char *path,
                          struct err *err)
{
    if (!array_grow(&dataset->origins, &dataset->room_origins, dataset->n_origins + 1,
                    sizeof *dataset->origins, "the data set", err))
        return NULL;
    struct origin *origin = &dataset->origins[dataset->n_origins++];
    *origin = (struct origin){ .kind = kind, .path = strdup(path), .tar = { .fd = -1 } };
    if (!origin->path)
        err_memory(err, "the data set");
    return origin->path ? origin : NULL;
}

/* The label of a patch or image by the rule of the listing; PATCH_UNLABELED: dropped. */
static int32_t label_by_rule(const struct listing *listing, int32_t label)
{
    switch (listing->labels) {
    case LABELS_IGNORED:
    case LABELS_TARGETS:
    case LABELS_IMAGES:
        return 0;
    case LABELS_NORMAL:
        return label == 0 ? 0 : PATCH_UNLABELED;
    case LABELS_OPTIONAL:
        return listing->config->truth == TRUTH_LABELS ? label : PATCH_UNLABELED;
    case LABELS_NEEDED:
        break;
    }
    return label;
}

/* --- stores --- */

enum data_side side_of_split(const char *split)
{
    static const struct {
        const char *word;
        enum data_side side;
    } words[] = { { "train", DATA_TRAIN }, { "training", DATA_TRAIN }, { "val", DATA_VAL },
                  { "valid", DATA_VAL },   { "validation", DATA_VAL }, { "tune", DATA_VAL },
                  { "test", DATA_TEST },   { "testing", DATA_TEST } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(split, words[i].word) == 0)
            return words[i].side;
    return DATA_NONE;
}

static bool side_of_attribute(const struct store_facts *facts, const char *path,
                              enum data_side *out, struct err *err)
{
    *out = side_of_split(facts->split);
    if (facts->split[0])
        return true;
    return err_set(err, ERR_MISSING,
                   "%s: the store has no split; add a column split to the slide list of extract, "
                   "or use data.split: patient",
                   path);
}

bool origin_add_patches(struct listing *listing, int32_t number, const struct patch_list *patches,
                        enum data_side side, struct err *err)
{
    const struct origin *origin = &listing->dataset->origins[number];
    struct new_sample new = { .origin = number, .patient = origin->patient, .side = side };
    int64_t added = 0, n = origin->n_groups ? origin->group_first[origin->n_groups] : 0;
    for (new.item = 0; new.item < n; new.item++) {
        new.label = label_by_rule(listing, label_of_store(listing, patches->items[new.item].label));
        new.target = patches->items[new.item].target;
        if (listing->labels == LABELS_TARGETS && isnan(new.target))
            continue;
        bool unlabelled = new.label == PATCH_UNLABELED;
        if (unlabelled && listing->labels != LABELS_OPTIONAL)
            continue;
        if ((new.label < 0 && !unlabelled) || new.label >= listing->dataset->n_classes)
            return refuse_label(listing, origin, new.item, patches->items[new.item].label, err);
        if (!dataset_add_sample(listing->dataset, &new, err))
            return false;
        added++;
    }
    if (added == 0 && listing->labels == LABELS_TARGETS)
        return err_set(err, ERR_FORMAT,
                       "%s: no patch has a target; extract it with annotations, or omit it",
                       origin->path);
    return added > 0 || listing->labels == LABELS_NORMAL
               ? true
               : err_set(
                     err, ERR_FORMAT,
                     "%s: no labelled patches; extract it with annotations or labels, or omit it",
                     origin->path);
}

bool origin_open_store(struct listing *listing, const char *path, struct err *err)
{
    struct dataset *dataset = listing->dataset;
    struct origin *origin = origin_new(dataset, ORIGIN_STORE, path, err);
    if (!origin || !store_open(path, &origin->store, err))
        return false;
    const struct store_facts *facts = store_facts(origin->store);
    if (store_patches(origin->store)->n == 0)
        return true; /* of a slide without tissue: no patient, size or resolution to tell of */
    if (!synthetic_store_allowed(listing, path, facts->synthetic, err))
        return false;
    char *stem = file_stem(path);
    const char *slide = facts->slide[0] ? facts->slide : stem ? stem : "";
    const char *patient = facts->patient[0] ? facts->patient : slide;
    if (listing->synthetic == SYNTHETIC_ONLY)
        patient = SYNTHETIC_PATIENT;
    origin->patient = dataset_add_patient(dataset, patient);
    free(stem);
    origin->patch_px = store_patch_px(origin->store);
    origin->n_groups = store_n_groups(origin->store);
    origin->group_first = calloc((size_t)origin->n_groups + 1, sizeof *origin->group_first);
    if (!origin->group_first || origin->patient < 0)
        return err_memory(err, path);
    for (int64_t g = 0; g < origin->n_groups; g++)
        origin->group_first[g + 1] = origin->group_first[g] + store_group(origin->store, g).n;
    const struct train_config *config = listing->config;
    if (config->data.resize_px == 0 && origin->patch_px < config->network.input_px)
        return err_set(err, ERR_USAGE,
                       "%s: patches have %lld px, but network.input_px is %lld; set "
                       "network.input_px, or data.resize_px",
                       path, (long long)origin->patch_px, (long long)config->network.input_px);
    return origin_agrees(listing, origin, err);
}

/* Where the patches lie: stores are closed while others are read. */
static bool keep_places(struct origin *origin, struct err *err)
{
    const struct patch_list *patches = store_patches(origin->store);
    origin->slide = strdup(store_facts(origin->store)->slide);
    origin->places = calloc((size_t)patches->n + 1, sizeof *origin->places);
    if (!origin->slide || !origin->places)
        return err_memory(err, origin->path);
    for (int64_t i = 0; i < patches->n; i++)
        origin->places[i] =
            (struct place_l0){ (int32_t)patches->items[i].x_l0, (int32_t)patches->items[i].y_l0 };
    return true;
}

static bool add_store(struct listing *listing, const char *path, struct err *err)
{
    struct dataset *dataset = listing->dataset;
    const struct train_config *config = listing->config;
    if (!origin_open_store(listing, path, err))
        return false;
    int32_t number = dataset->n_origins - 1;
    struct origin *origin = &dataset->origins[number];
    enum data_side side = listing->side;
    const struct store_facts *facts = store_facts(origin->store);
    bool splits = config->data.val.n == 0 && listing->side == DATA_TRAIN &&
                  listing->labels != LABELS_NORMAL && listing->labels != LABELS_OPTIONAL &&
                  listing->synthetic != SYNTHETIC_ONLY;
    bool empty = origin->n_groups == 0;
    enum data_side said = DATA_NONE;
    if (splits && !empty && config->data.split == SPLIT_ATTRIBUTE &&
        !side_of_attribute(facts, path, &side, err))
        return false;
    if (splits && config->data.split == SPLIT_PATIENT && facts->split[0] &&
        side_of_attribute(facts, path, &said, err) && said == DATA_TEST)
        side = DATA_TEST; /* is never drawn */
    bool ok =
        empty || (origin_add_patches(listing, number, store_patches(origin->store), side, err) &&
                  (listing->labels != LABELS_OPTIONAL || keep_places(origin, err)));
    store_close(origin->store);
    origin->store = NULL;
    return ok;
}

/* --- images --- */

static int32_t class_of_text(const struct train_config *config, const char *text, size_t length)
{
    char *end = NULL;
    for (size_t i = 0; i < config->classes.n; i++)
        if (strlen(config->classes.items[i]) == length &&
            strncmp(config->classes.items[i], text, length) == 0)
            return (int32_t)i;
    if (length == 0 || length > 4 || !isdigit((unsigned char)*text))
        return -1;
    long number = strtol(text, &end, 10);
    return end == text + length && number < (long)config->classes.n ? (int32_t)number : -1;
}

/* "_class1" before the extension, else a folder on the way of the name of a class; -1: none. */
static int32_t class_of_file(const struct train_config *config, const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *mark = strstr(base, "_class");
    if (mark) {
        const char *number = mark + strlen("_class");
        return class_of_text(config, number, strcspn(number, "._"));
    }
    int32_t label = -1;
    for (const char *part = name; slash && part < slash;) {
        size_t length = strcspn(part, "/");
        int32_t found = class_of_text(config, part, length);
        label = found >= 0 ? found : label;
        part += length + 1;
    }
    return label;
}

/* Between the path of a origin and the name of an image in it: names in a folder begin with '/'. */
static const char *joint(const char *name)
{
    return name[0] == '/' ? "" : ": ";
}

static bool patient_of_file(struct listing *listing, const char *path, const char *name,
                            int32_t *out, struct err *err)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    regmatch_t found[2];
    if (listing->synthetic == SYNTHETIC_ONLY) {
        *out = dataset_add_patient(listing->dataset, SYNTHETIC_PATIENT);
        return *out >= 0 || err_memory(err, "the data set");
    }
    for (int i = 0; i < listing->n_patterns; i++) {
        if (regexec(&listing->patients[i], base, 2, found, 0) != 0 || found[1].rm_so < 0)
            continue;
        char *patient = strndup(base + found[1].rm_so, (size_t)(found[1].rm_eo - found[1].rm_so));
        *out = patient ? dataset_add_patient(listing->dataset, patient) : -1;
        free(patient);
        return *out >= 0 ? true : err_memory(err, "the data set");
    }
    if (listing->labels == LABELS_OPTIONAL) {
        *out = dataset_add_patient(listing->dataset, "");
        return *out >= 0 || err_memory(err, "the data set");
    }
    return err_set(err, ERR_USAGE,
                   "%s%s%s: the name contains no patient; set data.patient to a regular expression "
                   "whose first group matches it, e.g. '^([^_]+)_'",
                   path, joint(name), name);
}

static bool is_image(const char *name)
{
    static const char *const endings[] = { ".png", ".PNG", ".jpg", ".JPG", ".jpeg", ".JPEG" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(file_extension(name), endings[i]) == 0)
            return true;
    return false;
}

static bool add_image(struct listing *listing, const char *path, const char *name, int64_t item,
                      struct err *err)
{
    struct new_sample new = { .origin = listing->dataset->n_origins - 1,
                              .item = item,
                              .side = listing->side };
    if (listing->labels == LABELS_TARGETS)
        return err_set(err, ERR_USAGE,
                       "%s%s%s: images have no targets; objective regress takes patch stores from "
                       "'extract --target'",
                       path, joint(name), name);
    new.label = label_by_rule(listing, class_of_file(listing->config, name));
    if (new.label < 0 && listing->labels == LABELS_NORMAL)
        return true;
    if (new.label < 0 && listing->labels == LABELS_OPTIONAL)
        new.label = PATCH_UNLABELED;
    else if (new.label < 0)
        return err_set(err, ERR_FORMAT,
                       "%s%s%s: class unknown: neither _class0 in the name nor a folder named "
                       "after one of the classes",
                       path, joint(name), name);
    listing->dataset->has_images = true;
    return patient_of_file(listing, path, name, &new.patient, err) &&
           dataset_add_sample(listing->dataset, &new, err);
}

static bool add_tar(struct listing *listing, const char *path, struct err *err)
{
    struct origin *origin = origin_new(listing->dataset, ORIGIN_TAR, path, err);
    if (!origin || !tar_open(path, &origin->tar, err))
        return false;
    int64_t before = listing->dataset->n_samples;
    for (size_t i = 0; i < origin->tar.n; i++)
        if (is_image(origin->tar.entries[i].name) &&
            (!synthetic_image_allowed(listing, origin, origin->tar.entries[i].name, false, err) ||
             !add_image(listing, path, origin->tar.entries[i].name, (int64_t)i, err)))
            return false;
    return listing->dataset->n_samples > before ||
           err_set(err, ERR_FORMAT, "%s: contains no PNG or JPEG images", path);
}

static bool keep_file(struct origin *origin, const char *name, struct err *err)
{
    char **more = realloc(origin->files, (origin->n_files + 1) * sizeof *more);
    if (more)
        origin->files = more;
    if (!more || !(more[origin->n_files] = strdup(name)))
        return err_memory(err, name);
    origin->n_files++;
    return true;
}

static bool has_labels(const char *path, struct err *err)
{
    char *labels = label_image_of(path, err);
    free(labels);
    return labels != NULL;
}

/* Images below origin->path/below, at any depth. */
static bool walk(struct listing *listing, int32_t number, const char *below, int depth,
                 struct err *err)
{
    char **names = NULL;
    size_t n = 0;
    bool needed = listing->labels == LABELS_IMAGES;
    char *folder = text_format("%s%s", listing->dataset->origins[number].path, below);
    bool ok = folder || err_memory(err, "a folder of images");
    if (ok && depth > MAX_DEPTH)
        ok = err_set(err, ERR_FORMAT, "%s: folders are nested too deeply", folder);
    ok = ok && folder_names(folder, NULL, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        struct origin *origin = &listing->dataset->origins[number];
        char *name = text_format("%s/%s", below, names[i]);
        char *path = name ? text_format("%s%s", origin->path, name) : NULL;
        ok = path || err_memory(err, "a folder of images");
        if (ok && file_is_folder(path)) {
            ok = walk(listing, number, name, depth + 1, err);
        } else if (ok && is_image(name) && !(needed && label_image_is(name)) &&
                   !synthetic_picture(path)) {
            ok = synthetic_image_allowed(listing, origin, name, origin->n_files == 0, err) &&
                 (!needed || has_labels(path, err)) && keep_file(origin, name, err) &&
                 add_image(listing, origin->path, name, (int64_t)origin->n_files - 1, err);
        }
        free(name);
        free(path);
    }
    folder_names_free(names, n);
    free(folder);
    return ok;
}

static bool add_folder(struct listing *listing, const char *path, struct err *err)
{
    char **names = NULL;
    size_t n = 0, stores = 0;
    bool ok = folder_names(path, NULL, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        if (strcmp(file_extension(names[i]), ".h5") != 0 || listing->labels == LABELS_IMAGES)
            continue;
        char *store = text_format("%s/%s", path, names[i]);
        ok = store ? add_store(listing, store, err) : err_memory(err, path);
        free(store);
        stores++;
    }
    folder_names_free(names, n);
    if (!ok || stores > 0)
        return ok;
    int64_t before = listing->dataset->n_samples;
    return origin_new(listing->dataset, ORIGIN_FOLDER, path, err) &&
           walk(listing, listing->dataset->n_origins - 1, "", 0, err) &&
           (listing->dataset->n_samples > before ||
            (listing->labels == LABELS_IMAGES
                 ? err_set(err, ERR_FORMAT, "%s: contains no images (PNG, JPEG) to segment", path)
                 : err_set(err, ERR_FORMAT, "%s: contains neither patch stores (.h5) nor images",
                           path)));
}

/* Images that are named one by one are a folder without a name. Whether one can be read turns out
 * when it is. */
static bool add_file(struct listing *listing, const char *path, struct err *err)
{
    struct dataset *dataset = listing->dataset;
    struct origin *last = dataset->n_origins ? &dataset->origins[dataset->n_origins - 1] : NULL;
    if (!last || last->kind != ORIGIN_FOLDER || last->path[0])
        last = origin_new(dataset, ORIGIN_FOLDER, "", err);
    return last && keep_file(last, path, err) &&
           add_image(listing, "", path, (int64_t)last->n_files - 1, err);
}

static bool is_store_or_tar(const char *path)
{
    const char *extension = file_extension(path);
    return strcmp(extension, ".tar") == 0 || strcmp(extension, ".h5") == 0 ||
           strcmp(extension, ".hdf5") == 0;
}

bool origin_add(struct listing *listing, const char *path, struct err *err)
{
    if (config_tables(listing->config))
        return origin_add_texts(listing, path, err);
    if (config_whole(listing->config))
        return origin_add_slides(listing, path, err);
    if (file_is_folder(path))
        return add_folder(listing, path, err);
    if (listing->labels == LABELS_IMAGES && file_exists(path))
        return err_set(err, ERR_USAGE,
                       "%s: not a folder; objective segment takes folders of images with label "
                       "images beside them",
                       path);
    if (listing->labels == LABELS_OPTIONAL && !is_store_or_tar(path))
        return add_file(listing, path, err);
    if (!file_exists(path))
        return err_set(err, ERR_IO, "%s: no such file or folder", path);
    if (strcmp(file_extension(path), ".tar") == 0)
        return add_tar(listing, path, err);
    return add_store(listing, path, err);
}

/* --- pixels --- */

/* Closes the least recently used store, if too many are open. */
static void make_room(const struct dataset *dataset)
{
    struct origin *oldest = NULL;
    int open = 0;
    for (int32_t i = 0; i < dataset->n_origins; i++) {
        struct origin *origin = &dataset->origins[i];
        open += origin->store != NULL;
        if (origin->store && (!oldest || origin->used < oldest->used))
            oldest = origin;
    }
    if (open >= MAX_OPEN_STORES) {
        store_close(oldest->store);
        oldest->store = NULL;
    }
}

static uint64_t last_use(const struct dataset *dataset)
{
    uint64_t last = 0;
    for (int32_t i = 0; i < dataset->n_origins; i++)
        last = dataset->origins[i].used > last ? dataset->origins[i].used : last;
    return last;
}

bool dataset_in_group(const struct dataset *dataset, int64_t sample)
{
    return dataset->origins[dataset_origin(dataset, sample)].kind == ORIGIN_STORE;
}

int64_t dataset_group_bytes(const struct dataset *dataset, int64_t sample)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    const int64_t *first = &origin->group_first[dataset_group(dataset, sample)];
    return (first[1] - first[0]) * origin->patch_px * origin->patch_px * 3;
}

bool dataset_read_group(const struct dataset *dataset, int64_t sample, uint8_t *out,
                        struct err *err)
{
    struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    int32_t number = dataset_group(dataset, sample);
    if (!origin->store) {
        make_room(dataset);
        if (!store_open(origin->path, &origin->store, err))
            return false;
    }
    origin->used = last_use(dataset) + 1;
    int64_t first = origin->group_first[number], n = origin->group_first[number + 1] - first;
    struct store_group now = { 0 };
    if (number < store_n_groups(origin->store))
        now = store_group(origin->store, number);
    if (now.first != first || now.n != n || store_patch_px(origin->store) != origin->patch_px)
        return err_set(err, ERR_FORMAT, "%s: changed while it was in use", origin->path);
    return store_read(origin->store, first, n, out, err);
}

static bool read_patch(const struct origin *origin, int64_t item, const uint8_t *group,
                       struct image *out, struct err *err)
{
    if (!image_new(out, origin->patch_px, origin->patch_px, 3, err))
        return false;
    int64_t index = item - origin->group_first[origin_group(origin, item)];
    memcpy(out->px, group + (size_t)index * image_bytes(out), image_bytes(out));
    return true;
}

bool dataset_read(const struct dataset *dataset, int64_t sample, const uint8_t *group,
                  struct image *out, struct err *err)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    int64_t item = dataset_item(dataset, sample);
    if (origin->kind == ORIGIN_STORE)
        return read_patch(origin, item, group, out, err);
    bool ok = false;
    if (origin->kind == ORIGIN_FOLDER) {
        char *path = text_format("%s%s", origin->path, origin->files[item]);
        ok = path ? image_read(path, out, err) : err_memory(err, origin->path);
        free(path);
        return ok;
    }
    uint8_t *bytes = NULL;
    const struct tar_entry *entry = &origin->tar.entries[item];
    if (tar_read(&origin->tar, (size_t)item, &bytes, err)) {
        ok = image_decode(bytes, (size_t)entry->size, entry->name, out, err) ||
             err_prefix(err, origin->path);
        free(bytes);
    }
    return ok;
}

bool dataset_patch_px(const struct dataset *dataset, int64_t sample, int64_t *out, struct err *err)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    struct image image = { 0 };
    *out = origin->patch_px;
    if (origin->kind == ORIGIN_STORE)
        return true;
    if (!dataset_read(dataset, sample, NULL, &image, err))
        return false;
    *out = image.width;
    image_free(&image);
    return true;
}

const char *dataset_origin_path(const struct dataset *dataset, int64_t sample)
{
    return dataset->origins[dataset_origin(dataset, sample)].path;
}

struct sample_place dataset_place(const struct dataset *dataset, int64_t sample)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    int64_t item = dataset_item(dataset, sample);
    if (!origin->places)
        return (struct sample_place){ "", -1, -1 };
    return (struct sample_place){ origin->slide, origin->places[item].x, origin->places[item].y };
}

char *dataset_sample_name(const struct dataset *dataset, int64_t sample)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    int64_t item = dataset_item(dataset, sample);
    if (origin->kind == ORIGIN_STORE)
        return text_format("%s patch %lld", origin->path, (long long)item);
    if (origin->kind == ORIGIN_FOLDER)
        return text_format("%s%s", origin->path, origin->files[item]);
    if (origin->kind == ORIGIN_TEXTS)
        return text_format("%s:%d", origin->path, origin->table.lines[item]);
    if (origin->kind == ORIGIN_SLIDES)
        return strdup(origin->slides.entries[item].path);
    return text_format("%s: %s", origin->path, origin->tar.entries[item].name);
}
