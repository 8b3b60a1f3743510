/* test_verdict_forest.c: trees and forests against scikit-learn (tests/golden/verdict_forest.py),
 * threads, the file and its checks, cross-validation; and the features of CAMELYON16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "base/file.h"
#include "base/pool.h"
#include "support/golden_json.h"
#include "support/paths.h"
#include "verdict/feature_table.h"
#include "verdict/forest.h"
#include "base/text.h"

static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };

struct set {
    double *x, *y;
    bool *positive;
    struct forest_data data;
};

static struct set set_of(const json_t *want, const char *x, const char *y, int64_t features)
{
    size_t n;
    struct set set = { golden_numbers(want, x, NULL), golden_numbers(want, y, &n), NULL, { 0 } };
    set.positive = calloc(n, sizeof *set.positive);
    for (size_t i = 0; i < n; i++)
        set.positive[i] = set.y[i] == 1;
    set.data = (struct forest_data){ (int64_t)n, features, set.x, set.positive };
    return set;
}

static void set_free(struct set *set)
{
    free(set->x), free(set->y), free(set->positive);
}

static void train(const struct forest_data *data, const struct forest_options *options, int threads,
                  struct forest *out)
{
    struct err err = { 0 };
    struct ctx ctx = { .pool = pool_new(threads) };
    if (!forest_train(data, names, options, &ctx, out, &err))
        fail_msg("%s", err.text);
    pool_free(ctx.pool);
}

static double area_on(const struct forest *forest, const struct forest_data *data)
{
    double *scores = calloc((size_t)data->n, sizeof *scores), area;
    for (int64_t i = 0; i < data->n; i++)
        scores[i] = forest_score(forest, data->values + i * data->n_features);
    assert_true(auc_area(scores, data->positive, data->n, &area, NULL));
    free(scores);
    return area;
}

static void a_tree_is_scikit_learns(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/forest.json");
    json_t *trees = json_object_get(golden, "trees");
    assert_int_equal(json_array_size(trees), 3);
    for (size_t k = 0; k < 3; k++) {
        json_t *want = json_array_get(trees, k);
        int64_t features = (int64_t)golden_number(want, "features", 0);
        struct set set = set_of(want, "x", "y", features);
        struct forest_options options = { .trees = 1,
                                          .depth = (int64_t)golden_number(want, "depth", 0),
                                          .split_features = features,
                                          .min_leaf = (int64_t)golden_number(want, "min_leaf", 0),
                                          .seed = k };
        struct forest forest;
        train(&set.data, &options, 1, &forest);
        const struct forest_tree *tree = &forest.trees[0];
        assert_int_equal(tree->n, json_array_size(json_object_get(want, "feature")));
        for (size_t i = 0; i < (size_t)tree->n; i++) {
            assert_int_equal(tree->nodes[i].feature, golden_number(want, "feature", i));
            assert_int_equal(tree->nodes[i].left, golden_number(want, "left", i));
            assert_int_equal(tree->nodes[i].right, golden_number(want, "right", i));
            assert_near(tree->nodes[i].threshold, golden_number(want, "threshold", i), 1e-12,
                        "threshold");
            assert_near(tree->nodes[i].value, golden_number(want, "value", i), 1e-12, "value");
        }
        for (size_t i = 0; i < (size_t)features; i++)
            assert_near(forest.importances[i], golden_number(want, "importances", i), 1e-9,
                        "importance");
        assert_true(isnan(forest.oob_auc) && forest.oob_rows == 0);
        forest_free(&forest), set_free(&set);
    }
    json_decref(golden);
}

/* Mean over seeds: single forests differ by luck, in scikit-learn too. */
static void a_forest_is_as_good(void **state)
{
    (void)state;
    enum { SEEDS = 5, FEATURES = 6 };
    json_t *golden = golden_json("tests/golden/verdict/forest.json");
    json_t *want = json_object_get(golden, "forest");
    struct set set = set_of(want, "x", "y", FEATURES),
               test = set_of(want, "test_x", "test_y", FEATURES);
    double area = 0, unseen = 0, importances[FEATURES] = { 0 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct forest_options options = {
            .trees = 200, .min_leaf = 1, .bootstrap = true, .seed = seed
        };
        struct forest forest;
        train(&set.data, &options, 2, &forest);
        area += area_on(&forest, &test.data) / SEEDS;
        unseen += forest.oob_auc / SEEDS;
        assert_int_equal(forest.oob_rows, set.data.n);
        for (int i = 0; i < FEATURES; i++)
            importances[i] += forest.importances[i] / SEEDS;
        forest_free(&forest);
    }
    assert_near(area, golden_number(want, "auc", 0), .02, "area on test rows");
    assert_near(unseen, golden_number(want, "oob_auc", 0), .02, "out-of-bag area");
    for (size_t i = 0; i < FEATURES; i++)
        assert_near(importances[i], golden_number(want, "importances", i), .02, "importance");
    set_free(&set), set_free(&test);
    json_decref(golden);
}

static char *only_match(const char *folder, const char *kind)
{
    char *pattern = text_format("%s/data/camelyon16/features/*_%s_*.csv", folder, kind);
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    char *path = strdup(found.gl_pathv[0]);
    globfree(&found), free(pattern);
    return path;
}

/* AUC on the test slides and out of bag, means over seeds. */
static void train_and_apply(const struct feature_table *train_set, const struct forest_data *tests,
                            double *area, double *unseen)
{
    enum { SEEDS = 5 };
    struct forest_data data = { train_set->n, 30, train_set->values, train_set->positive };
    struct ctx ctx = { .pool = pool_new(2) };
    struct err err = { 0 };
    *area = *unseen = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct forest_options options = {
            .trees = 200, .min_leaf = 1, .bootstrap = true, .seed = seed
        };
        struct forest forest;
        assert_true(forest_train(&data, (const char *const *)train_set->names, &options, &ctx,
                                 &forest, &err));
        *area += area_on(&forest, tests) / SEEDS;
        *unseen += forest.oob_auc / SEEDS;
        forest_free(&forest);
    }
    pool_free(ctx.pool);
}

/* The features of one threshold, "5" or "9": from the 266 training slides to the 129 test slides,
 * whose labels are in the table. */
static void check_camelyon16(const char *folder, const char *kind, const json_t *golden,
                             const struct slide_table *table, const bool *labels)
{
    struct err err = { 0 };
    char *paths[3];
    static const char *const parts[3] = { "normal", "tumor", "test" };
    for (int i = 0; i < 3; i++) {
        char *name = text_format("%s_%s", parts[i], kind);
        paths[i] = only_match(folder, name);
        free(name);
    }
    struct feature_table train_set, test_set;
    struct feature_request request = { .paths = (const char *[]){ paths[0], paths[1] },
                                       .n_paths = 2,
                                       .slide_column = "name",
                                       .label_column = "tumor" };
    if (!feature_table_read(&request, &train_set, &err))
        fail_msg("%s", err.text);
    struct feature_request apply = { .paths = (const char *[]){ paths[2] },
                                     .n_paths = 1,
                                     .slide_column = "name",
                                     .names = (const char *const *)train_set.names,
                                     .n_names = (size_t)train_set.n_features };
    assert_true(feature_table_read(&apply, &test_set, &err));
    assert_int_equal(train_set.n, 266);
    assert_int_equal(train_set.n_features, 30);
    bool positive[129];
    for (int64_t i = 0; i < test_set.n; i++)
        positive[i] = labels[slide_table_find(table, test_set.slides[i])];
    struct forest_data test_data = { test_set.n, 30, test_set.values, positive };
    double area, unseen;
    train_and_apply(&train_set, &test_data, &area, &unseen);
    const json_t *want = json_object_get(json_object_get(golden, "camelyon16"), kind);
    print_message("test AUC %.4f (scikit-learn %.4f), out-of-bag %.4f (%.4f)\n", area,
                  golden_number(want, "auc", 0), unseen, golden_number(want, "oob_auc", 0));
    assert_near(area, golden_number(want, "auc", 0), .02, "area on test slides");
    assert_near(unseen, golden_number(want, "oob_auc", 0), .02, "out-of-bag area");
    feature_table_free(&train_set), feature_table_free(&test_set);
    free(paths[0]), free(paths[1]), free(paths[2]);
}

static void camelyon16_slides(void **state)
{
    (void)state;
    const char *folder = getenv("SHARED");
    char *truth = text_format("%s/data/camelyon16/reference.csv", folder ? folder : "");
    if (!file_exists(truth)) {
        print_message("skipped: no %s\n", truth);
        free(truth);
        skip();
    }
    json_t *golden = golden_json("tests/golden/verdict/forest.json");
    struct slide_table table;
    struct err err = { 0 };
    bool labels[129];
    int column;
    assert_true(slide_table_read(truth, "slide_name", &table, &err));
    assert_true(slide_table_column(&table, "truth", "", &column, &err));
    assert_int_equal(table.n, 129);
    assert_true(slide_table_labels(&table, column, NULL, labels, &err));
    check_camelyon16(folder, "5", golden, &table, labels);
    check_camelyon16(folder, "9", golden, &table, labels);
    slide_table_free(&table), free(truth);
    json_decref(golden);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/forest.json");
    struct set set = set_of(json_object_get(golden, "forest"), "x", "y", 6);
    struct forest_options options = { .trees = 40, .min_leaf = 2, .bootstrap = true, .seed = 9 };
    struct forest one, three, other;
    train(&set.data, &options, 1, &one);
    train(&set.data, &options, 3, &three);
    options.seed = 10;
    train(&set.data, &options, 1, &other);
    assert_true(one.oob_auc == three.oob_auc && one.oob_auc != other.oob_auc);
    for (int64_t k = 0; k < 40; k++) {
        assert_int_equal(one.trees[k].n, three.trees[k].n);
        for (int32_t i = 0; i < one.trees[k].n; i++) {
            const struct forest_node *a = &one.trees[k].nodes[i], *b = &three.trees[k].nodes[i];
            assert_true(a->feature == b->feature && a->threshold == b->threshold &&
                        a->left == b->left && a->right == b->right && a->value == b->value);
        }
    }
    forest_free(&one), forest_free(&three), forest_free(&other), set_free(&set);
    json_decref(golden);
}

static void a_written_forest_reads_back(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/forest.json");
    struct set set = set_of(json_object_get(golden, "forest"), "x", "y", 6);
    struct forest_options options = {
        .trees = 25, .depth = 5, .min_leaf = 1, .bootstrap = true, .seed = 3
    };
    struct forest forest, read;
    struct err err = { 0 };
    char *path = scratch_path("forest.json");
    train(&set.data, &options, 1, &forest);
    assert_true(forest_write(path, &forest, &err));
    if (!forest_read(path, &read, &err))
        fail_msg("%s", err.text);
    assert_true(read.oob_auc == forest.oob_auc && read.options.depth == 5);
    assert_string_equal(read.names[5], "f");
    for (int64_t i = 0; i < set.data.n; i++)
        assert_true(forest_score(&forest, set.x + 6 * i) == forest_score(&read, set.x + 6 * i));
    forest_free(&forest), forest_free(&read), set_free(&set), free(path);
    json_decref(golden);
}

static void refused(const char *tree, const char *why)
{
    struct forest forest;
    struct err err = { 0 };
    char *text =
        text_format("{\"format\":\"microtome forest\",\"version\":1,\"options\":{\"trees\":1,"
                    "\"depth\":0,\"split_features\":0,\"min_leaf\":1,\"bootstrap\":true,"
                    "\"seed\":1},\"oob_auc\":null,\"oob_rows\":0,\"features\":[{\"name\":"
                    "\"a\",\"importance\":1}],\"trees\":[%s]}",
                    tree);
    bool ok = forest_parse(text, strlen(text), "f.json", &forest, &err);
    if (!why) {
        assert_true(ok);
        assert_true(forest_score(&forest, (double[]){ 3 }) == 1);
        forest_free(&forest);
    } else {
        assert_false(ok);
        if (!strstr(err.text, why))
            fail_msg("'%s' does not say '%s'", err.text, why);
    }
    free(text);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    struct forest forest;
    struct err err = { 0 };
    refused("{\"feature\":[0,-1,-1],\"threshold\":[2.5,0,0],\"left\":[1,-1,-1],\"right\":[2,-1,-1],"
            "\"value\":[0.5,0,1]}",
            NULL);
    refused(
        "{\"feature\":[0,-1],\"threshold\":[1,0],\"left\":[0,-1],\"right\":[1,-1],\"value\":[0,1]}",
        "tree 0: node 0");
    refused(
        "{\"feature\":[0,-1],\"threshold\":[1,0],\"left\":[1,-1],\"right\":[1,-1],\"value\":[0,1]}",
        "node 0");
    refused(
        "{\"feature\":[0,-1],\"threshold\":[1,0],\"left\":[1,-1],\"right\":[2,-1],\"value\":[0,1]}",
        "node 0");
    refused("{\"feature\":[1],\"threshold\":[1],\"left\":[-1],\"right\":[-1],\"value\":[0]}",
            "node 0");
    refused("{\"feature\":[-1],\"threshold\":[1],\"left\":[-1],\"right\":[-1],\"value\":[1.5]}",
            "node 0");
    refused("{\"feature\":[-1],\"threshold\":[1],\"left\":[-1],\"right\":[-1],\"value\":[]}",
            "unequal");
    refused("{},{}", "2 trees");
    assert_false(forest_parse("{}", 2, "f.json", &forest, &err));
    assert_non_null(strstr(err.text, "f.json: not a forest"));
    assert_false(forest_parse("{", 1, "f.json", &forest, &err));
    assert_non_null(strstr(err.text, "f.json:1: not JSON"));
}

static void cross_validation_is_honest(void **state)
{
    (void)state;
    enum { N = 120 };
    double x[N], mean, deviation;
    bool positive[N];
    struct ctx ctx = { .pool = pool_new(1) };
    struct err err = { 0 };
    struct forest_options options = { .trees = 30, .min_leaf = 1, .bootstrap = true, .seed = 1 };
    for (int i = 0; i < N; i++)
        x[i] = i, positive[i] = i >= N / 2;
    struct forest_data data = { N, 1, x, positive };
    assert_true(forest_cross_validate(&data, &options, 4, &ctx, &mean, &deviation, &err));
    assert_true(mean > 0.99);
    for (int i = 0; i < N; i++) /* labels unrelated to the number */
        positive[i] = (i * 7919 % 104729) & 1;
    assert_true(forest_cross_validate(&data, &options, 4, &ctx, &mean, &deviation, &err));
    assert_true(mean < 0.75);
    for (int i = 0; i < N; i++)
        positive[i] = i < 3;
    assert_false(forest_cross_validate(&data, &options, 4, &ctx, &mean, &deviation, &err));
    assert_non_null(strstr(err.text, "--folds"));
    pool_free(ctx.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_scikit_learns),     cmocka_unit_test(a_forest_is_as_good),
        cmocka_unit_test(camelyon16_slides),           cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(a_written_forest_reads_back), cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(cross_validation_is_honest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
