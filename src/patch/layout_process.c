/* layout_process.c: the layout of the PROCESS pipeline (paper 001):
 * <class>/l<level>/c<center>/p<patient>/n<node>/<batch>/{patches,locations}. The classes are
 * tumor and normal, or those of the store. A batch is a group of patches of one class; locations
 * are level-0 corners [n, 2]. Patches without a label go below "unlabeled". */
#include <stdlib.h>
#include <string.h>
#include "patch/layout.h"
#include "base/text.h"

static const char unlabeled[] = "unlabeled";

static const char *class_name(const struct class_names *classes, int label)
{
    if (classes->n > 0 && label >= 0)
        return classes->items[label];
    return label > 0 ? "tumor" : label == 0 ? "normal" : unlabeled;
}

/* "patient_012" -> "012": the words are in the path already. '/' would start a new folder. */
static char *path_part(const char *value, const char *const *words, const char *otherwise)
{
    for (; *words; words++) {
        size_t length = strlen(*words);
        if (strncmp(value, *words, length) == 0 && value[length])
            value += length;
    }
    char *part = strdup(*value ? value : otherwise);
    for (char *at = part; at && *at; at++)
        if (*at == '/')
            *at = '_';
    return part;
}

static char *tree_path(const struct store_facts *facts, const char *class)
{
    static const char *const centers[] = { "center_", "centre_", NULL };
    static const char *const patients[] = { "patient_", NULL }, *const nodes[] = { "node_", NULL };
    char *center = path_part(facts->center, centers, "0");
    char *patient = path_part(facts->patient, patients, facts->slide);
    char *node = path_part(facts->node, nodes, "0");
    char *path = NULL;
    if (center && patient && node)
        path = text_format("%s/l%lld/c%s/p%s/n%s", class, (long long)facts->level, center, patient,
                           node);
    free(center);
    free(patient);
    free(node);
    return path;
}

/* One batch: the patches `members` of the list. */
static bool create_batch(struct layout_writer *writer, const char *tree, int64_t batch,
                         const int64_t *members, int64_t n)
{
    const struct store_request *request = writer->request;
    int64_t *locations = malloc((size_t)n * 2 * sizeof *locations), offset = 0;
    char *name = text_format("%s/%lld", tree, (long long)batch);
    hid_t group = locations && name ? h5_group(writer->file, name) : H5I_INVALID_HID;
    hid_t patches = H5I_INVALID_HID;
    hsize_t dims[2] = { (hsize_t)n, 2 };
    for (int64_t i = 0; group >= 0 && i < n; i++) {
        locations[2 * i] = request->patches->items[members[i]].x_l0;
        locations[2 * i + 1] = request->patches->items[members[i]].y_l0;
    }
    bool ok =
        group >= 0 &&
        h5_put_data(group, "locations", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, dims, locations) &&
        layout_reserve(group, "patches", n, request->facts->patch, &patches, &offset);
    for (int64_t i = 0; ok && i < n; i++)
        writer->offsets[members[i]] = offset + i * layout_unit_bytes(request->facts->patch);
    if (patches >= 0 && H5Dclose(patches) < 0)
        ok = false;
    if (group >= 0 && H5Gclose(group) < 0)
        ok = false;
    free(locations);
    free(name);
    return ok;
}

static bool create_class(struct layout_writer *writer, const char *class, int64_t *members)
{
    const struct store_request *request = writer->request;
    char *tree = tree_path(request->facts, class);
    bool ok = tree != NULL;
    int64_t n = 0, batch = 0;
    for (int64_t i = 0; ok && i < request->patches->n; i++) {
        if (strcmp(class_name(&writer->classes, request->patches->items[i].label), class) != 0)
            continue;
        members[n++] = i;
        if (n == request->group) {
            ok = create_batch(writer, tree, batch++, members, n);
            n = 0;
        }
    }
    if (ok && n > 0)
        ok = create_batch(writer, tree, batch, members, n);
    free(tree);
    return ok;
}

static bool create(struct layout_writer *writer)
{
    int64_t n = writer->request->patches->n, group = writer->request->group;
    int64_t *members = malloc((size_t)(group < n ? group : n) * sizeof *members);
    bool ok = members != NULL;
    for (int i = 0; ok && i < writer->classes.n; i++)
        ok = create_class(writer, writer->classes.items[i], members);
    if (writer->classes.n == 0)
        ok =
            ok && create_class(writer, "tumor", members) && create_class(writer, "normal", members);
    ok = ok && create_class(writer, unlabeled, members);
    free(members);
    return ok;
}

static bool recognise(hid_t file)
{
    return h5_has(file, "tumor") || h5_has(file, "normal") || h5_has(file, unlabeled);
}

struct search {
    struct layout_reader *reader;
    struct err *err;
    bool ok;
};

static int label_of(const struct class_names *classes, const char *name)
{
    for (int i = 0; i < classes->n; i++) {
        size_t length = strlen(classes->items[i]);
        if (strncmp(name, classes->items[i], length) == 0 && name[length] == '/')
            return i;
    }
    return classes->n > 0                     ? PATCH_UNLABELED
           : strncmp(name, "tumor/", 6) == 0  ? 1
           : strncmp(name, "normal/", 7) == 0 ? 0
                                              : PATCH_UNLABELED;
}

/* Every ".../patches" in the file is a set, with ".../locations" beside it. */
static herr_t visit(hid_t file, const char *name, const H5L_info_t *info, void *argument)
{
    (void)file;
    struct search *search = argument;
    static const char tail[] = "/patches";
    size_t length = strlen(name);
    if (info->type != H5L_TYPE_HARD || length < sizeof tail ||
        strcmp(name + length - (sizeof tail - 1), tail) != 0)
        return 0;
    struct layout_reader *reader = search->reader;
    char *locations = text_format("%.*s/locations", (int)(length - (sizeof tail - 1)), name);
    struct store_group *groups =
        realloc(reader->groups, (size_t)(reader->n_groups + 1) * sizeof *groups);
    if (groups)
        reader->groups = groups;
    int64_t first = reader->patches.n;
    if (!locations || !groups)
        search->ok = err_memory(search->err, reader->path);
    else
        search->ok = layout_add_set(reader, name, locations, 2, 0, label_of(&reader->classes, name),
                                    search->err);
    if (search->ok)
        groups[reader->n_groups++] =
            (struct store_group){ .first = first, .n = reader->patches.n - first };
    free(locations);
    return search->ok ? 0 : 1; /* 1 ends the search */
}

static bool open_process(struct layout_reader *reader, struct err *err)
{
    struct search search = { .reader = reader, .err = err, .ok = true };
    if (H5Lvisit(reader->file, H5_INDEX_NAME, H5_ITER_INC, visit, &search) < 0 && search.ok)
        return h5_fail(err, reader->path, "read");
    return search.ok;
}

const struct layout_ops layout_process = { "process", layout_list_patches, create,
                                           recognise, open_process,        layout_read_sets };
