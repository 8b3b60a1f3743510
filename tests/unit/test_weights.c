/* test_weights.c: safetensors files of PyTorch (tests/golden/weights.py), bad ones, writing;
 * weights into a graph by name with a report; config.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/model/model_config.h"
#include "net/model/weights.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"

static double expected(const char *type, int64_t i)
{
    double value = (double)(i - 3) / 4;
    if (strcmp(type, "BOOL") == 0)
        return value != 0;
    if (strcmp(type, "U8") == 0)
        return trunc(fabs(value));
    return type[0] == 'I' ? trunc(value) : value;
}

static void reads_what_pytorch_writes(void **state)
{
    (void)state;
    char *path = source_path("tests/golden/weights.safetensors");
    struct safetensors file;
    struct err err = { 0 };
    float floats[12];
    if (!safetensors_open(path, &file, &err))
        fail_msg("%s", err.text);
    assert_int_equal(file.n_tensors, 14);
    assert_string_equal(safetensors_metadata(&file, "made by"), "PyTorch");
    assert_null(safetensors_metadata(&file, "none"));
    for (size_t i = 0; i < file.n_tensors; i++) {
        const struct safetensors_tensor *tensor = &file.tensors[i];
        assert_ptr_equal(safetensors_find(&file, tensor->name), tensor);
        assert_true(tensor->count <= 12);
        if (strcmp(tensor->name, "bn.num_batches_tracked") == 0)
            continue;
        assert_true(safetensors_floats(tensor, floats));
        for (int64_t k = 0; k < tensor->count; k++)
            if ((double)floats[k] != expected(safetensors_type_name(tensor), k))
                fail_msg("%s: element %d is %g", tensor->name, (int)k, (double)floats[k]);
    }
    assert_null(safetensors_find(&file, "b"));
    assert_true(shape_equal(&safetensors_find(&file, "c.bf16")->shape, &SHAPE(2, 3, 2)));
    assert_int_equal(safetensors_find(&file, "k.scalar")->shape.rank, 0);
    assert_int_equal(safetensors_find(&file, "l.empty")->count, 0);
    assert_non_null(safetensors_find(&file, "m.name with \"quotes\" and \xc3\xbc"));
    safetensors_close(&file);
    free(path);
}

/* A file with this header, `data` zero bytes after it, and a header length that is off by `lie`. */
static bool parse(const char *header, size_t data, int64_t lie, struct err *err)
{
    size_t length = strlen(header), size = 8 + length + data;
    uint8_t *bytes = calloc(1, size);
    uint64_t stated = (uint64_t)((int64_t)length + lie);
    struct safetensors file;
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(stated >> 8 * i);
    memcpy(bytes + 8, header, length);
    bool ok = safetensors_parse(bytes, size, "bad.safetensors", &file, err);
    if (ok)
        safetensors_close(&file);
    free(bytes);
    return ok;
}

#define ENTRY(name, type, shape, from, to)                                                         \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"

static void refuses_lies(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        int64_t lie;
        const char *text;
    } cases[] = {
        { "{}", 0, 1, "does not fit" },
        { "{}", 0, INT64_MAX - 2, "does not fit" },
        { "{}", 0, -3, "does not fit" },
        { "{}", 1, 0, "belong to no tensor" },
        { "[]", 0, 0, "not an object" },
        { "{", 0, 0, "not JSON" },
        { "\xff\xfe", 0, 0, "not JSON" },
        { "{\"a\":1}", 4, 0, "no dtype" },
        { "{\"a\":{\"dtype\":\"F32\"}}", 4, 0, "its shape" },
        { "{" ENTRY("a", "F31", "1", "0", "4") "}", 4, 0, "unknown dtype" },
        { "{" ENTRY("a", "F32", "1", "0", "8") "}", 8, 0, "does not match its shape" },
        { "{" ENTRY("a", "F32", "2", "0", "8") "}", 4, 0, "outside the file" },
        { "{" ENTRY("a", "F32", "1", "-4", "0") "}", 4, 0, "outside the file" },
        { "{" ENTRY("a", "F32", "1", "4", "0") "}", 4, 0, "outside the file" },
        { "{" ENTRY("a", "F32", "1", "0.0", "4") "}", 4, 0, "not two numbers" },
        { "{" ENTRY("a", "F32", "-1", "0", "4") "}", 4, 0, "other than numbers" },
        { "{" ENTRY("a", "F32", "1,1,1,1,1,1,1", "0", "4") "}", 4, 0, "at most 6" },
        { "{" ENTRY("a", "F32", "4294967296,4294967296,2", "0", "4") "}", 4, 0, "too large" },
        { "{" ENTRY("a", "F64", "4611686018427387904", "0", "0") "}", 0, 0,
          "does not match its shape" },
        { "{" ENTRY("a", "F32", "1", "4", "8") "}", 8, 0, "gap" },
        { "{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("b", "F32", "1", "0", "4") "}", 4, 0,
          "overlaps" },
        { "{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("a", "F32", "1", "4", "8") "}", 8, 0,
          "duplicate" },
        { "{\"__metadata__\":1}", 0, 0, "__metadata__" },
        { "{\"__metadata__\":{\"a\":1}}", 0, 0, "is not text" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = { 0 };
        if (parse(cases[i].header, cases[i].data, cases[i].lie, &err))
            fail_msg("taken: %s", cases[i].header);
        if (!strstr(err.text, cases[i].text) || !strstr(err.text, "bad.safetensors"))
            fail_msg("%s: %s", cases[i].header, err.text);
    }
    assert_true(parse("{" ENTRY("a", "F32", "1", "0", "4") "}   ", 4, 0, NULL));
    assert_true(parse("{" ENTRY("a", "F32", "0,9223372036854775807", "0", "0") "}", 0, 0, NULL));
}

/* conv1 (3 -> 4), bn1, fc (4 -> classes) */
static struct graph *network(int64_t classes)
{
    struct graph *g = graph_new("small");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(1, 3, 8, 8));
    x = graph_batch_norm(g, graph_conv(g, x, "conv1", 4, false, conv_square(3, 1, 1)), "bn1");
    x = graph_flatten(g, graph_global_average_pool(g, graph_relu(g, x)));
    graph_output(g, "logits", graph_linear(g, x, "fc", classes, true));
    if (!graph_ok(g, &err) || !graph_initialize(g, (uint64_t)classes, &err))
        fail_msg("%s", err.text);
    return g;
}

static bool same_floats(const struct graph *a, const struct graph *b, const char *name)
{
    value_id ia = graph_find(a, name), ib = graph_find(b, name);
    return memcmp(graph_data(a, ia), graph_data(b, ib),
                  (size_t)shape_count(graph_shape(a, ia)) * sizeof(float)) == 0;
}

static void weights_come_back(void **state)
{
    (void)state;
    struct graph *a = network(3), *b = network(3);
    char *path = scratch_path("small.safetensors");
    struct err err = { 0 };
    struct weights_report report;
    const struct safetensors_note note = { "epoch", "12" };
    graph_data(b, graph_find(b, "conv1.weight"))[5] += 1;
    if (!weights_write(a, path, &note, 1, &err) || !weights_read(b, path, NULL, &report, &err))
        fail_msg("%s", err.text);
    assert_int_equal(report.n_loaded, 7);
    assert_int_equal(report.missing.n + report.unexpected.n + report.wrong_shape.n, 0);
    for (int32_t i = 0; i < a->n_values; i++)
        if (graph_is_parameter(a, i))
            assert_true(same_floats(a, b, a->values[i].name));
    weights_report_free(&report);
    struct safetensors file;
    assert_true(safetensors_open(path, &file, &err));
    assert_string_equal(safetensors_metadata(&file, "epoch"), "12");
    assert_string_equal(safetensors_metadata(&file, "format"), "pt");
    assert_int_equal((file.tensors[0].data - (const uint8_t *)file.map) % 4, 0);
    safetensors_close(&file);
    graph_free(a), graph_free(b);
    free(path);
}

static void a_new_head_stays_as_it_is(void **state)
{
    (void)state;
    struct graph *pretrained = network(5), *ours = network(2), *untouched = network(2);
    char *path = scratch_path("head.safetensors");
    struct err err = { 0 };
    struct weights_report report;
    const char *head = "fc.";
    struct weights_options options = { .fresh = &head, .n_fresh = 1 };
    assert_true(weights_write(pretrained, path, NULL, 0, &err));
    assert_false(weights_read(ours, path, NULL, &report, &err));
    assert_int_equal(report.wrong_shape.n, 2);
    assert_string_equal(report.wrong_shape.texts[0], "fc.weight: [2, 4] here, [5, 4] in the file");
    assert_non_null(strstr(err.text, "not the weights of small"));
    assert_non_null(strstr(err.text, "2 do not match: fc.weight: [2, 4] here"));
    assert_true(same_floats(ours, untouched, "conv1.weight")); /* nothing changed */
    weights_report_free(&report);
    if (!weights_read(ours, path, &options, &report, &err))
        fail_msg("%s", err.text);
    assert_int_equal(report.fresh.n, 2);
    assert_int_equal(report.n_loaded, 5);
    assert_true(same_floats(ours, pretrained, "conv1.weight"));
    assert_true(same_floats(ours, untouched, "fc.weight"));
    weights_report_free(&report);
    graph_free(pretrained), graph_free(ours), graph_free(untouched);
    free(path);
}

static void missing_and_unexpected_are_listed(void **state)
{
    (void)state;
    struct graph *ours = network(2);
    char *path = scratch_path("other.safetensors");
    float floats[16] = { 0 };
    struct err err = { 0 };
    struct weights_report report;
    struct safetensors_source sources[] = {
        { "module.bn1.weight", SHAPE(4), floats },
        { "module.bn1.num_batches_tracked", SHAPE(1), floats },
        { "module.extra", SHAPE(2, 3), floats },
    };
    struct weights_options options = { .prefix = "module." };
    assert_true(safetensors_write(path, sources, 3, NULL, 0, &err));
    assert_false(weights_read(ours, path, &options, &report, &err));
    assert_int_equal(report.n_loaded, 1);
    assert_int_equal(report.missing.n, 6);
    assert_int_equal(report.unexpected.n, 1);
    assert_string_equal(report.unexpected.texts[0], "module.extra");
    assert_non_null(strstr(err.text, "6 are missing from the file: conv1.weight, bn1.bias"));
    assert_non_null(strstr(err.text, "1 are not in the network: module.extra"));
    weights_report_free(&report);
    options.any_missing = options.any_unexpected = true;
    assert_true(weights_read(ours, path, &options, NULL, &err));
    assert_true(graph_data(ours, graph_find(ours, "bn1.weight"))[3] == 0);
    assert_false(weights_read(ours, "/nowhere/x.safetensors", NULL, &report, &err));
    graph_free(ours);
    free(path);
}

static const char wsinfer[] =
    "{\"spec_version\": \"1.0\", \"architecture\": \"resnet34\", \"num_classes\": 2,\n"
    " \"patch_size_pixels\": 350, \"spacing_um_px\": 0.25, \"class_names\": [\"Other\", "
    "\"Tumor\"],\n"
    " \"transform\": [{\"name\": \"Resize\", \"arguments\": {\"size\": 224}}, {\"name\": "
    "\"ToTensor\"},\n"
    "  {\"name\": \"Normalize\", \"arguments\": {\"mean\": [0.7238, 0.5716, 0.6779], \"std\": "
    "[0.112, 0.1459, 0.1089]}}]}";

static void config_of_wsinfer(void **state)
{
    (void)state;
    struct model_config config, again;
    struct err err = { 0 };
    char *path = scratch_path("config.json");
    if (!model_config_parse(wsinfer, strlen(wsinfer), "config.json", &config, &err))
        fail_msg("%s", err.text);
    assert_int_equal(config.num_classes, 2);
    assert_int_equal(config.patch_size_pixels, 350);
    assert_true(config.spacing_um_px == 0.25);
    assert_string_equal(config.class_names[1], "Tumor");
    assert_int_equal(config.n_sizings, 1);
    assert_int_equal(config.sizings[0].kind, MODEL_RESIZE_SHORTER);
    assert_int_equal(config.sizings[0].height, 224);
    assert_true(config.mean[2] == 0.6779 && config.std[0] == 0.112);
    assert_null(config.network);
    config.network = strdup("scan_small");
    config.padding = PADDING_VALID;
    config.stride_px = 16;
    if (!model_config_write(path, &config, &err) || !model_config_read(path, &again, &err))
        fail_msg("%s", err.text);
    assert_string_equal(again.network, "scan_small");
    assert_string_equal(again.architecture, "resnet34");
    assert_int_equal(again.padding, PADDING_VALID);
    assert_int_equal(again.stride_px, 16);
    assert_true(memcmp(again.mean, config.mean, sizeof config.mean) == 0);
    assert_true(memcmp(again.std, config.std, sizeof config.std) == 0);
    assert_true(again.n_sizings == 1 && again.sizings[0].kind == MODEL_RESIZE_SHORTER &&
                again.sizings[0].height == 224);
    model_config_free(&config);
    model_config_free(&again);
    free(path);
}

static void config_errors_name_the_key(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
    } cases[] = {
        { "\"num_classes\": 2", "\"num_classes\": -1", "'num_classes' must be a whole number" },
        { "\"num_classes\": 2", "\"num_classes\": 0", "'class_names' must be a list of 0 names" },
        { "\"num_classes\": 2", "\"num_classes\": 3", "'class_names' must be a list of 3 names" },
        { "\"num_classes\": 2,", "", "'num_classes' is missing" },
        { "0.25", "-1", "'spacing_um_px' must be a number above 0" },
        { "350", "\"350\"", "'patch_size_pixels' must be a whole number" },
        { "\"Tumor\"", "5", "'class_names' must be a list of names" },
        { "ToTensor", "RandomFlip", "'RandomFlip' is not one of" },
        { "0.112,", "0,", "std' must be three numbers above 0" },
        { "0.6779", "0.6, 0.7", "mean' must be three numbers" },
        { "224", "[1, 2, 3]", "one number or two" },
        { "{\"name\": \"Resize\", \"arguments\": {\"size\": 224}}, {\"name\": \"ToTensor\"}",
          "{\"name\": \"ToTensor\"}, {\"name\": \"Resize\", \"arguments\": {\"size\": 224}}",
          "Resize' must be before ToTensor" },
        { "\"architecture\": \"resnet34\"", "\"microtome\": {\"stain\": {\"method\": 5}}",
          "stain: method' must be the name of a method" },
        { "\"architecture\": \"resnet34\"",
          "\"microtome\": {\"stain\": {\"method\": \"macenko\", \"fitted_on\": \"slide\"}}",
          "stain' must be an object that describes what stains are normalised to" },
        { "\"architecture\": \"resnet34\"", "\"microtome\": {\"padding\": \"none\"}",
          "padding' must be zero, reflect, replicate or valid" },
        { "\"architecture\": \"resnet34\"",
          "\"microtome\": {\"whole\": {\"mpp\": 1, \"long_side_px\": 9}}",
          "whole' must be an object with either mpp or long_side_px" },
        { "\"architecture\": \"resnet34\"",
          "\"microtome\": {\"whole\": {\"mpp\": 1, \"margin_um\": 5, \"tissue\": \"\"}}",
          "whole: tissue' must be the name of a method" },
        { "{\"spec_version\"", "[\"spec_version\"", "not JSON" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(wsinfer, cases[i].from);
        assert_non_null(at);
        char *text = text_format("%.*s%s%s", (int)(at - wsinfer), wsinfer, cases[i].to,
                                 at + strlen(cases[i].from));
        struct model_config config;
        struct err err = { 0 };
        if (model_config_parse(text, strlen(text), "c.json", &config, &err))
            fail_msg("taken: %s", cases[i].to);
        if (!strstr(err.text, cases[i].text) || strncmp(err.text, "c.json:", 7) != 0)
            fail_msg("%s: %s", cases[i].to, err.text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_pytorch_writes),
        cmocka_unit_test(refuses_lies),
        cmocka_unit_test(weights_come_back),
        cmocka_unit_test(a_new_head_stays_as_it_is),
        cmocka_unit_test(missing_and_unexpected_are_listed),
        cmocka_unit_test(config_of_wsinfer),
        cmocka_unit_test(config_errors_name_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
