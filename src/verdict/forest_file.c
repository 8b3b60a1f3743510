/* forest_file.c: a forest as JSON, and back with everything checked. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/version.h"
#include "verdict/forest.h"

#define FORMAT "microtome forest"
#define VERSION 1
#define MOST_BYTES ((size_t)1 << 30)
#define MOST_FEATURES 100000

static void put_tree(struct json_out *json, const struct forest_tree *tree)
{
    json_out_object(json, NULL);
    json_out_array_line(json, "feature");
    for (int32_t i = 0; i < tree->n; i++)
        json_out_int(json, NULL, tree->nodes[i].feature);
    json_out_close_array(json);
    json_out_array_line(json, "threshold");
    for (int32_t i = 0; i < tree->n; i++)
        json_out_real(json, NULL, tree->nodes[i].threshold);
    json_out_close_array(json);
    json_out_array_line(json, "left");
    for (int32_t i = 0; i < tree->n; i++)
        json_out_int(json, NULL, tree->nodes[i].left);
    json_out_close_array(json);
    json_out_array_line(json, "right");
    for (int32_t i = 0; i < tree->n; i++)
        json_out_int(json, NULL, tree->nodes[i].right);
    json_out_close_array(json);
    json_out_array_line(json, "value");
    for (int32_t i = 0; i < tree->n; i++)
        json_out_real(json, NULL, tree->nodes[i].value);
    json_out_close_array(json);
    json_out_close_object(json);
}

bool forest_write(const char *path, const struct forest *forest, struct err *err)
{
    struct file_out file;
    struct json_out json;
    if (!file_out_open(&file, path, err))
        return false;
    json_out_begin(&json, file.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "format", FORMAT);
    json_out_int(&json, "version", VERSION);
    json_out_text(&json, "program", "microtome " MICROTOME_VERSION);
    json_out_object_line(&json, "options");
    json_out_int(&json, "trees", forest->options.trees);
    json_out_int(&json, "depth", forest->options.depth);
    json_out_int(&json, "split_features", forest->options.split_features);
    json_out_int(&json, "min_leaf", forest->options.min_leaf);
    json_out_bool(&json, "bootstrap", forest->options.bootstrap);
    json_out_int(&json, "seed", (int64_t)forest->options.seed);
    json_out_close_object(&json);
    json_out_real(&json, "oob_auc", forest->oob_auc);
    json_out_int(&json, "oob_rows", forest->oob_rows);
    json_out_array(&json, "features");
    for (int64_t i = 0; i < forest->n_features; i++) {
        json_out_object_line(&json, NULL);
        json_out_text(&json, "name", forest->names[i]);
        json_out_real(&json, "importance", forest->importances[i]);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_array(&json, "trees");
    for (int64_t i = 0; i < forest->options.trees; i++)
        put_tree(&json, &forest->trees[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&file, err);
}

/* An integer of an object, within limits. */
static bool whole(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return false;
    *out = json_integer_value(value);
    return *out >= low && *out <= high;
}

static bool get_options(const json_t *root, struct forest *out)
{
    const json_t *options = json_object_get(root, "options");
    struct forest_options *o = &out->options;
    const int64_t most = INT64_C(1) << 53;
    int64_t seed = 0;
    bool ok = whole(options, "trees", 1, 10000000, &o->trees) &&
              whole(options, "depth", 0, most, &o->depth) &&
              whole(options, "split_features", 0, most, &o->split_features) &&
              whole(options, "min_leaf", 1, most, &o->min_leaf) &&
              whole(options, "seed", 0, most, &seed) &&
              json_is_boolean(json_object_get(options, "bootstrap")) &&
              whole(root, "oob_rows", 0, most, &out->oob_rows);
    const json_t *auc = json_object_get(root, "oob_auc");
    o->seed = (uint64_t)seed;
    o->bootstrap = json_is_true(json_object_get(options, "bootstrap"));
    out->oob_auc = json_is_number(auc) ? json_number_value(auc) : NAN;
    return ok;
}

static bool get_features(const json_t *root, struct forest *out, struct err *err)
{
    const json_t *features = json_object_get(root, "features");
    size_t n = json_array_size(features);
    if (n < 1 || n > MOST_FEATURES)
        return err_set(err, ERR_FORMAT, "'features' is not a list of features");
    out->names = calloc(n, sizeof *out->names);
    out->importances = calloc(n, sizeof *out->importances);
    if (!out->names || !out->importances)
        return err_memory(err, "a forest");
    out->n_features = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *feature = json_array_get(features, i);
        const char *name = json_string_value(json_object_get(feature, "name"));
        const json_t *importance = json_object_get(feature, "importance");
        if (!name || !json_is_number(importance))
            return err_set(err, ERR_FORMAT, "feature %zu has no name or no importance", i);
        out->importances[i] = json_number_value(importance);
        if (!(out->names[i] = strdup(name)))
            return err_memory(err, "a forest");
    }
    return true;
}

struct tree_lists {
    const json_t *feature, *threshold, *left, *right, *value;
};

/* A node's children come after it and have no other parent, so walking ends. parents [n] counts. */
static bool get_node(const struct tree_lists *lists, size_t i, int32_t n, int64_t n_features,
                     uint8_t *parents, struct forest_node *node)
{
    const json_t *feature = json_array_get(lists->feature, i);
    const json_t *left = json_array_get(lists->left, i), *right = json_array_get(lists->right, i);
    const json_t *threshold = json_array_get(lists->threshold, i);
    const json_t *value = json_array_get(lists->value, i);
    if (!json_is_integer(feature) || !json_is_integer(left) || !json_is_integer(right) ||
        !json_is_number(threshold) || !json_is_number(value))
        return false;
    json_int_t f = json_integer_value(feature), l = json_integer_value(left);
    json_int_t r = json_integer_value(right);
    double share = json_number_value(value);
    if (f < -1 || f >= n_features || !(share >= 0 && share <= 1))
        return false;
    if (f == -1 ? l != -1 || r != -1
                : l <= (json_int_t)i || r <= (json_int_t)i || l >= n || r >= n || l == r ||
                      parents[l]++ || parents[r]++)
        return false;
    *node = (struct forest_node){ (int32_t)f, (int32_t)l, (int32_t)r, json_number_value(threshold),
                                  share };
    return true;
}

static bool get_tree(const json_t *json, int64_t n_features, struct forest_tree *tree,
                     struct err *err)
{
    struct tree_lists lists = { json_object_get(json, "feature"),
                                json_object_get(json, "threshold"), json_object_get(json, "left"),
                                json_object_get(json, "right"), json_object_get(json, "value") };
    size_t n = json_array_size(lists.feature);
    if (n < 1 || n > INT32_MAX || json_array_size(lists.threshold) != n ||
        json_array_size(lists.left) != n || json_array_size(lists.right) != n ||
        json_array_size(lists.value) != n)
        return err_set(err, ERR_FORMAT, "its lists are missing or of unequal length");
    uint8_t *parents = calloc(n, 1);
    tree->nodes = calloc(n, sizeof *tree->nodes);
    bool ok = (parents && tree->nodes) || err_memory(err, "a forest");
    tree->n = (int32_t)n;
    for (size_t i = 0; ok && i < n; i++)
        ok = get_node(&lists, i, tree->n, n_features, parents, &tree->nodes[i]) ||
             err_set(err, ERR_FORMAT, "node %zu is out of range", i);
    free(parents);
    return ok;
}

static bool get_forest(const json_t *root, struct forest *out, struct err *err)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *trees = json_object_get(root, "trees");
    if (!format || strcmp(format, FORMAT) != 0)
        return err_set(err, ERR_FORMAT, "not a forest; 'microtome classify train' writes one");
    if (json_integer_value(json_object_get(root, "version")) != VERSION)
        return err_set(err, ERR_FORMAT, "a forest of another version; train it again");
    if (!get_options(root, out))
        return err_set(err, ERR_FORMAT, "'options' is incomplete or out of range");
    if (!get_features(root, out, err))
        return false;
    if (json_array_size(trees) != (size_t)out->options.trees)
        return err_set(err, ERR_FORMAT, "%zu trees, but 'options' says %lld",
                       json_array_size(trees), (long long)out->options.trees);
    out->trees = calloc((size_t)out->options.trees, sizeof *out->trees);
    if (!out->trees)
        return err_memory(err, "a forest");
    for (size_t i = 0; i < json_array_size(trees); i++)
        if (!get_tree(json_array_get(trees, i), out->n_features, &out->trees[i], err)) {
            char where[40];
            snprintf(where, sizeof where, "tree %zu", i);
            return err_prefix(err, where);
        }
    return true;
}

bool forest_parse(const char *text, size_t size, const char *path, struct forest *out,
                  struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, size, 0, &why);
    *out = (struct forest){ 0 };
    if (!root)
        return err_set(err, ERR_FORMAT, "%s:%d: not JSON: %s", path, why.line, why.text);
    bool ok = get_forest(root, out, err) || err_prefix(err, path);
    json_decref(root);
    if (!ok)
        forest_free(out);
    return ok;
}

bool forest_read(const char *path, struct forest *out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    *out = (struct forest){ 0 };
    if (!file_read(path, MOST_BYTES, &text, &size, err))
        return false;
    bool ok = forest_parse(text, size, path, out, err);
    free(text);
    return ok;
}
