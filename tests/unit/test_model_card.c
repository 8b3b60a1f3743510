/* test_model_card.c: what config.json says of a model's outputs is kept and obeyed: features,
 * probabilities, which output of several; and weights under other names or for another size of
 * image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "net/model/positions.h"
#include "net/model/weights.h"
#include "net/model/weights_names.h"
#include "net/onnx/onnx.h"
#include "net/zoo/zoo.h"
#include "support/paths.h"

/* A config.json with these classes and this under "microtome". */
static char *card(const char *classes, const char *own)
{
    return text_format("{\"num_classes\": %s, \"patch_size_pixels\": 224, \"spacing_um_px\": 0.5,\n"
                       " \"transform\": [{\"name\": \"ToTensor\"}],\n \"microtome\": {%s}}",
                       classes, own);
}

/* --- the card itself --- */

static void a_card_comes_back(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct model_config config, again;
    char *text = card("0", "\"licence\": \"CC-BY-4.0\", \"citation\": \"A. Nobody \\\"2026\\\"\", "
                           "\"outputs\": [{\"name\": \"tokens\", \"meaning\": \"features\"}, "
                           "{\"name\": \"scores\", \"meaning\": \"logits\"}], \"later\": [1]");
    char *path = scratch_path("config.json");
    if (!model_config_parse(text, strlen(text), "c", &config, &err) ||
        !model_config_write(path, &config, &err) || !model_config_read(path, &again, &err))
        fail_msg("%s", err.text);
    assert_true(model_config_features(&again));
    assert_int_equal(again.num_classes, 0);
    assert_int_equal(again.n_outputs, 2);
    assert_string_equal(again.outputs[0].name, "tokens");
    assert_string_equal(again.outputs[1].name, "scores");
    assert_int_equal(again.outputs[1].meaning, MEANING_LOGITS);
    assert_string_equal(again.licence, "CC-BY-4.0");
    assert_string_equal(again.citation, "A. Nobody \"2026\"");
    model_config_free(&config), model_config_free(&again);
    remove(path);
    free(text), free(path);
}

static void bad_cards_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *classes, *own, *text;
    } cases[] = {
        { "0", "\"outputs\": []", "c: 'microtome: outputs' must be a list of 1 to 8 objects" },
        { "0", "\"outputs\": [{\"name\": \"x\"}]", "with a name and a meaning" },
        { "0", "\"outputs\": [{\"name\": \"x\", \"meaning\": \"tokens\"}]",
          "logits, probabilities, features or number" },
        { "0", "\"outputs\": [{\"name\": \"x\", \"meaning\": \"unknown\"}]",
          "logits, probabilities, features or number" },
        { "0", "\"outputs\": [{\"name\": \"x\", \"meaning\": \"logits\"}]",
          "c: 'num_classes' must be 0 if the first output is features, and only then" },
        { "1, \"class_names\": [\"a\"]",
          "\"outputs\": [{\"name\": \"x\", \"meaning\": \"features\"}]",
          "c: 'num_classes' must be 0 if the first output is features, and only then" },
        { "1, \"class_names\": [\"a\"]",
          "\"outputs\": [{\"name\": \"x\", \"meaning\": \"number\"}]",
          "a number only if the objective is regress" },
        { "0, \"class_names\": [\"a\"]", "", "'class_names' must be a list of 0 names" },
        { "-1", "", "'num_classes' must be a whole number" },
        { "0", "\"licence\": 5", "'microtome: licence' must be text" },
        { "0", "\"objective\": \"classify_audio\"",
          "'microtome: audio' must be an object that says how recordings become frames" },
        { "0", "\"objective\": \"classify_audio\", \"audio\": { \"long\": \"head_tail\" }",
          "'microtome: audio: long' must be truncate or refuse" },
        { "0",
          "\"objective\": \"classify_audio\", \"audio\": { \"long\": \"refuse\", "
          "\"sample_rate_hz\": 0 }",
          "'microtome: audio: sample_rate_hz' must be a whole number between 1 and 192000" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_config config;
        struct err err = { 0 };
        char *text = card(cases[i].classes, cases[i].own);
        if (model_config_parse(text, strlen(text), "c", &config, &err))
            fail_msg("taken: %s", text);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].own, err.text);
        free(text);
    }
}

/* --- obeyed --- */

/* A network with two outputs, "features" [1, 8] and "scores" [1, 3], as an ONNX file. */
static char *two_outputs(void)
{
    struct err err = { 0 };
    char *path = scratch_path("two.onnx");
    struct graph *g = graph_new("two");
    value_id x = graph_input(g, "x", SHAPE(1, 3, 16, 16));
    x = graph_relu(g, graph_conv(g, x, "c", 8, true, conv_square(3, 2, 1)));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "features", x);
    graph_output(g, "scores", graph_linear(g, x, "fc", 3, true));
    if (!graph_initialize(g, 1, &err) || !onnx_write(g, path, NULL, &err))
        fail_msg("%s", err.text);
    graph_free(g);
    return path;
}

static bool open_with(const char *path, char *text, struct model **out, struct err *err)
{
    char *config = scratch_path("config.json");
    FILE *stream = fopen(config, "w");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
    bool ok = model_open(&(struct model_source){ .file = path }, out, err);
    remove(config);
    free(config), free(text);
    return ok;
}

static void the_named_output_is_used(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct model *model = NULL;
    char *path = two_outputs();
    if (!open_with(path,
                   card("0", "\"outputs\": [{\"name\": \"features\", \"meaning\": \"features\"}]"),
                   &model, &err))
        fail_msg("%s", err.text);
    assert_true(model_gives_features(model));
    assert_int_equal(model->n_scores, 8);
    assert_int_equal(model->config.num_classes, 0);
    assert_false(model_as_classifier(model, OUTPUTS_AUTO, &err));
    assert_string_equal(err.text, "two: gives 8 features of an image, not class scores; 'microtome "
                                  "model run' writes them");
    assert_false(model_as_extractor(model, OUTPUTS_LOGITS, &err));
    assert_true(model_as_extractor(model, OUTPUTS_AUTO, &err));
    model_close(model);
    const char *three = "3, \"class_names\": [\"a\", \"b\", \"c\"]";
    if (!open_with(path,
                   card(three, "\"outputs\": [{\"name\": \"scores\", \"meaning\": \"logits\"}]"),
                   &model, &err))
        fail_msg("%s", err.text);
    assert_true(model_as_classifier(model, OUTPUTS_AUTO, &err));
    assert_int_equal(model->rule, SCORE_SOFTMAX);
    model_close(model);
    assert_false(open_with(
        path, card(three, "\"outputs\": [{\"name\": \"sores\", \"meaning\": \"logits\"}]"), &model,
        &err));
    assert_string_equal(err.text, "two: has no output 'sores', which its config.json names");
    remove(path), free(path);
}

static void probabilities_are_not_squashed_again(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct model *model = NULL;
    char *path = two_outputs();
    if (!open_with(path,
                   card("3, \"class_names\": [\"a\", \"b\", \"c\"]",
                        "\"outputs\": [{\"name\": \"scores\", \"meaning\": \"probabilities\"}]"),
                   &model, &err))
        fail_msg("%s", err.text);
    double scores[3];
    assert_true(model_as_classifier(model, OUTPUTS_AUTO, &err));
    assert_int_equal(model->rule, SCORE_AS_IS);
    assert_true(model_score(model, (const float[]){ 0.5f, 0.25f, 0.25f }, scores, &err));
    assert_true(scores[0] == 0.5 && scores[2] == 0.25);
    assert_true(model_as_classifier(model, OUTPUTS_LOGITS, &err)); /* --scores comes first */
    model_close(model);
    remove(path), free(path);
}

/* --- weights --- */

/* A file without the layer that classifies is a network too, and converted it stays one. */
static void weights_without_a_head_give_features(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = NULL;
    struct model *model = NULL;
    char *path = scratch_path("scan.safetensors"), *onnx = scratch_path("scan.onnx");
    struct model_source source = { .network = "scan_tiny", .weights = path };
    if (!zoo_build("scan_tiny", &(struct zoo_options){ .features = true }, &g, &err) ||
        !graph_initialize(g, 1, &err) || !weights_write(g, path, NULL, 0, &err) ||
        !model_open(&source, &model, &err) || !onnx_write(model->graph, onnx, NULL, &err))
        fail_msg("%s", err.text);
    assert_true(model_gives_features(model) && model->n_scores == 48);
    assert_true(model_config_features(&model->config));
    model_close(model);
    if (!model_open(&(struct model_source){ .file = onnx }, &model, &err))
        fail_msg("%s", err.text);
    assert_true(model_gives_features(model) && model->n_scores == 48);
    model_close(model);
    assert_false(open_with(path,
                           card("2, \"class_names\": [\"a\", \"b\"]", "\"network\": \"scan_tiny\""),
                           &model, &err));
    assert_non_null(strstr(err.text, "fc.weight"));
    remove(path), remove(onnx);
    graph_free(g), free(path), free(onnx);
}

static float *numbers(char **rest, int64_t n)
{
    float *out = calloc((size_t)n, sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < n; i++)
        out[i] = strtof(*rest, rest);
    return out;
}

static void positions_are_timms(void **state)
{
    (void)state;
    char *path = source_path("tests/golden/positions.txt"), *text = NULL;
    size_t size = 0;
    int cases = 0;
    assert_true(file_read(path, 1 << 20, &text, &size, NULL));
    for (char *rest = text; *rest && *rest != '\n' && strlen(rest) > 4; cases++) {
        int64_t head[4];
        for (int i = 0; i < 4; i++)
            head[i] = strtoll(rest, &rest, 10);
        int64_t n = head[2] * head[3] * head[1];
        float *in = numbers(&rest, head[0] * head[0] * head[1]), *wanted = numbers(&rest, n);
        float *made = calloc((size_t)n, sizeof *made);
        assert_true(positions_resample(in, head[0], head[1], head[2], head[3], made));
        for (int64_t i = 0; i < n; i++)
            if (!(fabsf(made[i] - wanted[i]) < 2e-6f))
                fail_msg("case %d, number %d: %.9g, not %.9g", cases, (int)i, (double)made[i],
                         (double)wanted[i]);
        free(in), free(wanted), free(made);
        rest += *rest == '\n';
    }
    assert_int_equal(cases, 5);
    free(path), free(text);
}

/* Weights of 32 x 32 px in a network for `side`. */
static bool open_vit(const char *path, int64_t side, struct model **out, struct err *err)
{
    struct model_source source = {
        .network = "vit_tiny_patch16_224", .weights = path, .height = side, .width = side
    };
    return model_open(&source, out, err);
}

static void positions_fit_another_size(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = NULL;
    struct model *model = NULL;
    char *path = scratch_path("vit.safetensors");
    struct zoo_options small = { .height = 32, .width = 32, .classes = 2 };
    if (!zoo_build("vit_tiny_patch16_224", &small, &g, &err) || !graph_initialize(g, 1, &err) ||
        !weights_write(g, path, NULL, 0, &err) || !open_vit(path, 48, &model, &err))
        fail_msg("%s", err.text);
    value_id wide = graph_find(model->graph, "pos_embed"), own = graph_find(g, "pos_embed");
    assert_true(shape_equal(graph_shape(model->graph, wide), &SHAPE(1, 10, 192)));
    const float *from = graph_data(g, own), *to = graph_data(model->graph, wide);
    assert_memory_equal(from, to, 192 * sizeof *to); /* of the class token */
    float resampled[9 * 192];
    assert_true(positions_resample(from + 192, 2, 192, 3, 3, resampled));
    assert_memory_equal(resampled, to + 192, sizeof resampled);
    model_close(model);
    graph_free(g), g = NULL;
    small.width = 48; /* 2 x 3 patches: not a square */
    if (!zoo_build("vit_tiny_patch16_224", &small, &g, &err) || !graph_initialize(g, 1, &err) ||
        !weights_write(g, path, NULL, 0, &err))
        fail_msg("%s", err.text);
    assert_false(open_vit(path, 48, &model, &err));
    assert_non_null(strstr(err.text, "pos_embed has 7 positions; 10, or another square and 1"));
    remove(path);
    graph_free(g), free(path);
}

/* As foundation models differ from the network whose name they have. */
static void settings_follow_from_the_weights(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = NULL;
    struct model *model = NULL;
    struct safetensors file;
    char *path = scratch_path("vit.safetensors"), *more = scratch_path("more.safetensors");
    struct zoo_options options = {
        .height = 32,
        .width = 32,
        .depth = 2,
        .features = true,
        .vit = { .known = true, .patch = 8, .gated = 40, .registers = 3, .scaled = true }
    };
    if (!zoo_build("vit_tiny_patch16_224", &options, &g, &err) || !graph_initialize(g, 1, &err) ||
        !weights_write(g, path, NULL, 0, &err) || !open_vit(path, 32, &model, &err))
        fail_msg("%s", err.text);
    assert_true(model_gives_features(model) && model->n_scores == 192);
    assert_int_equal(graph_parameter_count(model->graph), graph_parameter_count(g));
    value_id gamma = graph_find(model->graph, "blocks.1.ls2.gamma");
    assert_true(gamma != NO_VALUE && graph_data(model->graph, gamma)[5] == 1e-5f);
    model_close(model);
    graph_parameter(g, "blocks.1.attn.q_norm.weight", SHAPE(64));
    assert_true(graph_allocate(g, &err) && weights_write(g, more, NULL, 0, &err));
    assert_false(open_vit(more, 32, &model, &err));
    assert_non_null(strstr(err.text, "has 'blocks.1.attn.q_norm.weight', which "
                                     "vit_tiny_patch16_224 does not"));
    assert_true(safetensors_open(path, &file, &err));
    options = (struct zoo_options){ 0 };
    weights_settings(&file, "resnet18", &options);
    assert_false(options.vit.known);
    safetensors_close(&file);
    remove(path), remove(more);
    graph_free(g), free(path), free(more);
}

static void other_names_are_known(void **state)
{
    (void)state;
    static const float zeros[2 * 3 * 7 * 7];
    const struct safetensors_source swin[] = {
        { "head.weight", SHAPE(2, 3), zeros },
        { "layers.0.downsample.reduction.weight", SHAPE(2, 3), zeros },
        { "layers.2.blocks.0.norm1.bias", SHAPE(3), zeros },
        { "layers.2.downsample.norm.bias", SHAPE(3), zeros },
    };
    const struct safetensors_source vgg[] = {
        { "features.0.bias", SHAPE(3), zeros },
        { "head.fc.weight", SHAPE(2, 3), zeros },
        { "pre_logits.fc1.weight", SHAPE(2, 3, 7, 7), zeros },
    };
    struct err err = { 0 };
    struct safetensors file;
    char *path = scratch_path("names.safetensors");
    assert_true(safetensors_write(path, swin, 4, NULL, 0, &err));
    assert_true(safetensors_open(path, &file, &err) && weights_rename(&file, "ctranspath", &err));
    assert_non_null(safetensors_find(&file, "layers.1.downsample.reduction.weight"));
    assert_non_null(safetensors_find(&file, "layers.3.downsample.norm.bias"));
    assert_non_null(safetensors_find(&file, "layers.2.blocks.0.norm1.bias"));
    assert_non_null(safetensors_find(&file, "head.fc.weight"));
    assert_null(safetensors_find(&file, "layers.0.downsample.reduction.weight"));
    safetensors_close(&file);
    assert_true(safetensors_write(path, vgg, 3, NULL, 0, &err));
    assert_true(safetensors_open(path, &file, &err) && weights_rename(&file, "vgg16", &err));
    const struct safetensors_tensor *first = safetensors_find(&file, "classifier.0.weight");
    assert_true(first && shape_equal(&first->shape, &SHAPE(2, 147)));
    assert_non_null(safetensors_find(&file, "classifier.6.weight"));
    safetensors_close(&file);
    remove(path), free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_comes_back),
        cmocka_unit_test(bad_cards_are_refused),
        cmocka_unit_test(the_named_output_is_used),
        cmocka_unit_test(probabilities_are_not_squashed_again),
        cmocka_unit_test(weights_without_a_head_give_features),
        cmocka_unit_test(positions_are_timms),
        cmocka_unit_test(positions_fit_another_size),
        cmocka_unit_test(settings_follow_from_the_weights),
        cmocka_unit_test(other_names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
