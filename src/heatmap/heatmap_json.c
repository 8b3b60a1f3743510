/* heatmap_json.c: see heatmap_json.h. */
#include "heatmap/heatmap_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_file.h"
#include "base/version.h"

#define MAX_JSON_BYTES (256u << 20)
#define MAX_SIDE (INT64_C(1) << 40)
#define MAX_CLASSES 4096

void heatmap_info_free(struct heatmap_info *info)
{
    for (int64_t i = 0; info->class_names && i < info->n_classes; i++)
        free(info->class_names[i]);
    free(info->class_names);
    free(info->slide);
    free(info->path);
    free(info->mode);
    free(info->models);
    free(info->model_hash);
    free(info->options);
    *info = (struct heatmap_info){ 0 };
}

bool heatmap_info_copy(const struct heatmap_info *info, struct heatmap_info *out, struct err *err)
{
    *out = *info;
    out->slide = strdup(info->slide);
    out->path = strdup(info->path);
    out->mode = strdup(info->mode);
    out->models = strdup(info->models);
    out->model_hash = strdup(info->model_hash);
    out->options = strdup(info->options);
    out->class_names = calloc((size_t)info->n_classes, sizeof *out->class_names);
    bool ok = out->slide && out->path && out->mode && out->models && out->model_hash &&
              out->options && out->class_names;
    for (int64_t i = 0; ok && i < info->n_classes; i++)
        ok = (out->class_names[i] = strdup(info->class_names[i])) != NULL;
    if (ok)
        return true;
    heatmap_info_free(out);
    return err_memory(err, "a heatmap");
}

void heatmap_json_put_check(struct json_out *json, const char *key,
                            const struct heatmap_check *check)
{
    if (check->windows == 0) {
        json_out_text(json, key, NULL);
        return;
    }
    json_out_object_line(json, key);
    json_out_int(json, "windows", check->windows);
    json_out_real(json, "r", check->r);
    json_out_real(json, "mean", check->mean);
    json_out_real(json, "p95", check->p95);
    json_out_real(json, "max", check->max);
    json_out_real(json, "flipped", check->flipped);
    if (check->fitted_on > 0)
        json_out_int(json, "fitted_on", check->fitted_on);
    json_out_close_object(json);
}

static void put_stain(struct json_out *json, const struct stain_fit *stain)
{
    json_out_object_line(json, "stain");
    json_out_text(json, "method", stain_method_names[stain->method]);
    json_out_array_line(json, "values");
    for (int i = 0; i < 6; i++)
        json_out_real(json, NULL, stain->matrix[i / 3][i % 3]);
    for (int i = 0; i < 2; i++)
        json_out_real(json, NULL, stain->concentration_p99[i]);
    for (int i = 0; i < 3; i++)
        json_out_real(json, NULL, stain->lab_mean[i]);
    for (int i = 0; i < 3; i++)
        json_out_real(json, NULL, stain->lab_std[i]);
    json_out_close_array(json);
    json_out_close_object(json);
}

void heatmap_json_put(struct json_out *json, const struct heatmap_info *info)
{
    json_out_text(json, "program", "microtome " MICROTOME_VERSION);
    json_out_text(json, "slide", info->slide);
    json_out_text(json, "path", info->path);
    json_out_int(json, "width_l0", info->width_l0);
    json_out_int(json, "height_l0", info->height_l0);
    json_out_real(json, "mpp_l0", info->mpp_l0);
    json_out_real(json, "mpp", info->mpp);
    json_out_real(json, "downsample", info->downsample);
    json_out_int(json, "stride", info->stride);
    json_out_array_line(json, "origin");
    json_out_int(json, NULL, info->origin_x);
    json_out_int(json, NULL, info->origin_y);
    json_out_close_array(json);
    json_out_int(json, "window", info->window);
    json_out_int(json, "width", info->width);
    json_out_int(json, "height", info->height);
    json_out_array_line(json, "classes");
    for (int64_t i = 0; i < info->n_classes; i++)
        json_out_text(json, NULL, info->class_names[i]);
    json_out_close_array(json);
    if (heatmap_is_number(info)) {
        json_out_object_line(json, "number");
        json_out_real(json, "min", info->number.min);
        json_out_real(json, "max", info->number.max);
        json_out_text(json, "unit", info->number.unit);
        json_out_close_object(json);
    }
    json_out_int(json, "scored", info->scored);
    json_out_text(json, "mode", info->mode);
    json_out_text(json, "models", info->models);
    json_out_text(json, "model_hash", info->model_hash);
    json_out_text(json, "options", info->options);
    json_out_text(json, "inputs", info->inputs);
    put_stain(json, &info->stain);
    heatmap_json_put_check(json, "check", &info->check);
    heatmap_json_put_check(json, "raw_check", &info->raw);
}

/* Collects the first key that is wrong. */
struct getter {
    const json_t *object;
    const char *bad;
};

static int64_t get_int(struct getter *get, const char *key, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(get->object, key);
    int64_t number = json_is_integer(value) ? json_integer_value(value) : min - 1;
    if ((number < min || number > max) && !get->bad)
        get->bad = key;
    return number;
}

static double get_real(struct getter *get, const char *key, double min, double max)
{
    const json_t *value = json_object_get(get->object, key);
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(number >= min && number <= max) && !get->bad)
        get->bad = key;
    return number;
}

static char *get_text(struct getter *get, const char *key)
{
    const char *text = json_string_value(json_object_get(get->object, key));
    char *copy = text ? strdup(text) : NULL;
    if (!copy && !get->bad)
        get->bad = key;
    return copy;
}

static void get_classes(struct getter *get, struct heatmap_info *out)
{
    const json_t *list = json_object_get(get->object, "classes");
    size_t n = json_array_size(list);
    bool ok = n > 0 && n <= MAX_CLASSES && (out->class_names = calloc(n, sizeof(char *)));
    for (size_t i = 0; ok && i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        ok = name && (out->class_names[i] = strdup(name));
        out->n_classes++;
    }
    if (!ok && !get->bad)
        get->bad = "classes";
}

static bool get_number(const json_t *object, struct heatmap_info *out)
{
    if (!object)
        return true;
    struct getter get = { .object = object };
    const char *unit = json_string_value(json_object_get(object, "unit"));
    out->number.min = get_real(&get, "min", -1e300, 1e300);
    out->number.max = get_real(&get, "max", -1e300, 1e300);
    snprintf(out->number.unit, sizeof out->number.unit, "%s", unit ? unit : "");
    return !get.bad && out->n_classes == 1 && out->number.min < out->number.max;
}

bool heatmap_json_get_check(const json_t *object, const char *key, struct heatmap_check *out)
{
    const json_t *value = json_object_get(object, key);
    *out = (struct heatmap_check){ 0 };
    if (!value || json_is_null(value))
        return true;
    struct getter get = { .object = value };
    out->windows = get_int(&get, "windows", 1, INT64_MAX);
    out->r = json_is_null(json_object_get(value, "r")) ? NAN : get_real(&get, "r", -1.001, 1.001);
    out->mean = get_real(&get, "mean", 0, 1);
    out->p95 = get_real(&get, "p95", 0, 1);
    out->max = get_real(&get, "max", 0, 1);
    out->flipped = get_real(&get, "flipped", 0, 1);
    if (json_object_get(value, "fitted_on"))
        out->fitted_on = get_int(&get, "fitted_on", 1, INT64_MAX);
    return !get.bad;
}

static bool get_stain(const json_t *object, struct stain_fit *out)
{
    *out = (struct stain_fit){ 0 };
    if (!object) /* of an older version */
        return true;
    const char *method = json_string_value(json_object_get(object, "method"));
    const json_t *values = json_object_get(object, "values");
    int found = -1;
    for (int i = 0; method && stain_method_names[i]; i++)
        found = strcmp(stain_method_names[i], method) == 0 ? i : found;
    if (found < 0 || json_array_size(values) != 14)
        return false;
    out->method = (enum stain_method)found;
    double v[14];
    for (size_t i = 0; i < 14; i++)
        v[i] = json_number_value(json_array_get(values, i));
    memcpy(out->matrix, v, sizeof out->matrix);
    memcpy(out->concentration_p99, v + 6, sizeof out->concentration_p99);
    memcpy(out->lab_mean, v + 8, sizeof out->lab_mean);
    memcpy(out->lab_std, v + 11, sizeof out->lab_std);
    return true;
}

bool heatmap_json_get(const json_t *object, const char *path, struct heatmap_info *out,
                      struct err *err)
{
    struct getter get = { .object = object };
    const json_t *origin = json_object_get(object, "origin");
    *out = (struct heatmap_info){ 0 };
    out->slide = get_text(&get, "slide");
    out->path = get_text(&get, "path");
    out->width_l0 = get_int(&get, "width_l0", 1, MAX_SIDE);
    out->height_l0 = get_int(&get, "height_l0", 1, MAX_SIDE);
    out->mpp_l0 = get_real(&get, "mpp_l0", 0, 1e6);
    out->mpp = get_real(&get, "mpp", 0, 1e6);
    out->downsample = get_real(&get, "downsample", 1e-6, 1e6);
    out->stride = get_int(&get, "stride", 1, MAX_SIDE);
    out->origin_x = json_integer_value(json_array_get(origin, 0));
    out->origin_y = json_integer_value(json_array_get(origin, 1));
    if (json_array_size(origin) != 2 && !get.bad)
        get.bad = "origin";
    out->window = get_int(&get, "window", 1, MAX_SIDE);
    out->width = get_int(&get, "width", 1, MAX_SIDE);
    out->height = get_int(&get, "height", 1, MAX_SIDE);
    get_classes(&get, out);
    if (!get_number(json_object_get(object, "number"), out) && !get.bad)
        get.bad = "number";
    out->scored = get_int(&get, "scored", 0, INT64_MAX);
    out->mode = get_text(&get, "mode");
    out->models = get_text(&get, "models");
    out->model_hash = get_text(&get, "model_hash");
    out->options = get_text(&get, "options");
    const char *inputs = json_string_value(json_object_get(object, "inputs"));
    snprintf(out->inputs, sizeof out->inputs, "%s", inputs ? inputs : "");
    if (!get_stain(json_object_get(object, "stain"), &out->stain) && !get.bad)
        get.bad = "stain";
    if (!heatmap_json_get_check(object, "check", &out->check) && !get.bad)
        get.bad = "check";
    if (!heatmap_json_get_check(object, "raw_check", &out->raw) && !get.bad)
        get.bad = "raw_check";
    if (!get.bad)
        return true;
    heatmap_info_free(out);
    return err_set(err, ERR_FORMAT, "%s: the value of '%s' is missing or invalid", path, get.bad);
}

bool heatmap_json_load(const char *path, json_t **out, struct err *err)
{
    *out = json_file_read(path, MAX_JSON_BYTES, err);
    return *out != NULL;
}
