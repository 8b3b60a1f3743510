/* weights.c: matches the names of a graph and of a weight file, reports mismatches, copies. */
#include "net/model/weights.h"
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "net/model/torch_file.h"

static void list_free(struct weights_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->texts[i]);
    free(list->texts);
}

void weights_report_free(struct weights_report *report)
{
    list_free(&report->missing), list_free(&report->unexpected);
    list_free(&report->wrong_shape), list_free(&report->fresh);
    *report = (struct weights_report){ 0 };
}

/* Takes over text, which may be NULL (no memory). */
static bool list_add(struct weights_list *list, char *text, struct err *err)
{
    char **larger = text ? reallocarray(list->texts, list->n + 1, sizeof *larger) : NULL;
    if (!larger) {
        free(text);
        return err_memory(err, "the list of parameters");
    }
    list->texts = larger;
    larger[list->n++] = text;
    return true;
}

static bool may_stay_fresh(const struct weights_options *options, const char *name)
{
    for (size_t i = 0; i < options->n_fresh; i++) {
        const char *fresh = options->fresh[i];
        size_t length = strlen(fresh);
        if (strcmp(name, fresh) == 0 ||
            (length && fresh[length - 1] == '.' && strncmp(name, fresh, length) == 0))
            return true;
    }
    return false;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), n = strlen(tail);
    return length >= n && strcmp(text + length - n, tail) == 0;
}

/* The tensor for a parameter; NULL if there is none. */
static const struct safetensors_tensor *tensor_for(const struct safetensors *file,
                                                   const char *prefix, const char *name)
{
    char *full = text_format("%s%s", prefix, name);
    const struct safetensors_tensor *tensor = full ? safetensors_find(file, full) : NULL;
    free(full);
    return tensor;
}

/* One parameter: into the list where it belongs, or counted as loadable. */
static bool compare(const struct value *value, const struct safetensors_tensor *tensor,
                    const struct weights_options *options, struct weights_report *report,
                    struct err *err)
{
    char here[SHAPE_TEXT], there[SHAPE_TEXT];
    bool fresh = may_stay_fresh(options, value->name);
    if (!tensor)
        return list_add(fresh ? &report->fresh : &report->missing, strdup(value->name), err);
    const char *type = safetensors_type_name(tensor);
    bool number = strncmp(type, "F8", 2) != 0;
    if (number && shape_equal(&value->shape, &tensor->shape)) {
        report->n_loaded++;
        return true;
    }
    char *text =
        number ? text_format("%s: %s here, %s in the file", value->name,
                             shape_text(&value->shape, here), shape_text(&tensor->shape, there))
               : text_format("%s: the type %s is not supported", value->name, type);
    return list_add(fresh ? &report->fresh : &report->wrong_shape, text, err);
}

static bool in_graph(const struct graph *graph, const char *name)
{
    value_id value = graph_find(graph, name);
    return value != NO_VALUE && graph_is_parameter(graph, value);
}

static bool compare_all(const struct graph *graph, const struct safetensors *file,
                        const struct weights_options *options, struct weights_report *report,
                        struct err *err)
{
    const char *prefix = options->prefix ? options->prefix : "";
    size_t skip = strlen(prefix);
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        if (graph_is_parameter(graph, i) &&
            !compare(value, tensor_for(file, prefix, value->name), options, report, err))
            return false;
    }
    for (size_t i = 0; i < file->n_tensors; i++) {
        const char *name = file->tensors[i].name;
        if (ends_with(name, "num_batches_tracked"))
            continue;
        bool known = strncmp(name, prefix, skip) == 0 && in_graph(graph, name + skip);
        if (!known && !list_add(&report->unexpected, strdup(name), err))
            return false;
    }
    return true;
}

/* "; 3 are missing: a, b, c" for the first few. */
static void describe(FILE *text, const char *what, const struct weights_list *list)
{
    const size_t shown = 4;
    if (!list->n)
        return;
    fprintf(text, "; %zu %s: ", list->n, what);
    for (size_t i = 0; i < list->n && i < shown; i++)
        fprintf(text, "%s%s", i ? ", " : "", list->texts[i]);
    if (list->n > shown)
        fprintf(text, ", ..");
}

static bool fits(const struct graph *graph, const struct safetensors *file,
                 const struct weights_options *options, const struct weights_report *report,
                 struct err *err)
{
    static const struct weights_list none = { 0 };
    const struct weights_list *missing = options->any_missing ? &none : &report->missing;
    const struct weights_list *unexpected = options->any_unexpected ? &none : &report->unexpected;
    if (!missing->n && !unexpected->n && !report->wrong_shape.n)
        return true;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return err_memory(err, file->path);
    fprintf(stream, "%zu parameters match", report->n_loaded);
    describe(stream, "are missing from the file", missing);
    describe(stream, "are not in the network", unexpected);
    describe(stream, "do not match", &report->wrong_shape);
    if (fclose(stream) == 0)
        err_set(err, ERR_FORMAT, "%s: not the weights of %s: %s", file->path,
                *graph->name ? graph->name : "this network", text);
    free(text);
    return false;
}

bool weights_load(struct graph *graph, const struct safetensors *file,
                  const struct weights_options *options, struct weights_report *report,
                  struct err *err)
{
    static const struct weights_options strict = { 0 };
    struct weights_report own = { 0 };
    struct weights_report *found = report ? report : &own;
    *found = own;
    options = options ? options : &strict;
    bool ok =
        compare_all(graph, file, options, found, err) && fits(graph, file, options, found, err);
    for (int32_t i = 0; ok && i < graph->n_values; i++) {
        if (!graph_is_parameter(graph, i))
            continue;
        const struct safetensors_tensor *tensor =
            tensor_for(file, options->prefix ? options->prefix : "", graph->values[i].name);
        if (!tensor || !shape_equal(&tensor->shape, &graph->values[i].shape))
            continue;
        float *floats = graph_data(graph, i);
        if (!floats)
            ok = err_set(err, ERR_USAGE, "%s: the network has no memory for its parameters yet",
                         file->path);
        else
            safetensors_floats(tensor, floats);
    }
    weights_report_free(&own);
    return ok;
}

bool weights_open(const char *path, struct safetensors *out, struct err *err)
{
    return torch_file_is(path) ? torch_file_open(path, out, err) : safetensors_open(path, out, err);
}

bool weights_read(struct graph *graph, const char *path, const struct weights_options *options,
                  struct weights_report *report, struct err *err)
{
    struct safetensors file;
    if (report)
        *report = (struct weights_report){ 0 };
    if (!weights_open(path, &file, err))
        return false;
    bool ok = weights_load(graph, &file, options, report, err);
    safetensors_close(&file);
    return ok;
}

bool weights_write(const struct graph *graph, const char *path,
                   const struct safetensors_note *notes, size_t n_notes, struct err *err)
{
    struct safetensors_source *sources = calloc((size_t)graph->n_values + 1, sizeof *sources);
    if (!sources)
        return err_memory(err, path);
    size_t n = 0;
    bool ok = true;
    for (int32_t i = 0; ok && i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        if (!graph_is_parameter(graph, i))
            continue;
        const float *floats = graph_data(graph, i);
        if (!floats)
            ok = err_set(err, ERR_USAGE, "%s: the parameter %s has no values yet", path,
                         value->name);
        sources[n++] = (struct safetensors_source){ value->name, value->shape, floats };
    }
    ok = ok && safetensors_write(path, sources, n, notes, n_notes, err);
    free(sources);
    return ok;
}
