/* test_onnx_backend.c: the operator cases of ONNX itself (Debian: libonnx-testdata) through import
 * and a forward pass, with the tolerance of ONNX's own backend tests. A case is skipped if it uses
 * an unsupported operator, or for one of the reasons in `limits`; anything else fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/names.h"
#include "net/onnx/onnx.h"
#include "net/onnx/host.h"
#include "net/onnx/model.h"
#include "net/plan/plan.h"
#include "base/text.h"

#define RTOL 1e-3
#define ATOL 1e-7
#define MOST_PORTS 16

/* What the messages of cases say that we do not support, by design. */
static const struct {
    const char *text, *reason;
} limits[] = {
    { "is not supported", "an operator that we do not have" },
    { "spatial axes are not supported", "volumes" },
    { "training mode is not supported", "training mode" },
    { "not supported at this scale", "pixel coordinates of Resize that differ from ours" },
    { "keys of the past", "Attention with a cache, scores or softcap" },
    { "several heads with the same keys", "Attention with fewer heads of keys" },
    { "of opset 23 are supported", "Attention with windows" },
    { "keep_aspect_ratio_policy", "Resize to a size that is not larger or smaller" },
    { "half_pixel_symmetric", "Resize with half_pixel_symmetric" },
    { "only one exponent", "an exponent for each element" },
    { "the equation is not supported", "diagonals of Einsum, and results without '->'" },
    { "batch_dims", "GatherND with batches of indices" },
    { "only the same indices", "GatherElements with other indices in every row" },
    { "without elements", "tensors without elements" },
    { "has extent 0", "tensors without elements" },
    { "has size 0", "tensors without elements" },
    { "a constant of type", "a type that is not a number" },
    { "axes; at most 6", "more than 6 axes" },
    { "mode 'tf_crop_and_resize'", "resizing of a part" },
    { "leaves nothing", "tensors without elements" },
    { "bfloat16", "a type that is not a float" },
    { "only floats are supported", "a type that is not a float" },
    { "only numbers are supported", "texts" },
    { "only floats may", "integers as outputs" },
    { "only int8 and uint8 are supported", "a zero point that is an input" },
    { "several scales are not supported", "activations with several scales" },
    { "fmod is not supported", "the remainder of C's fmod" },
    { "used for something else", "inputs that are not tensors" },
};
enum { N_LIMITS = sizeof limits / sizeof *limits };

/* Float inputs after the first one that are weights, or limits, not activations. */
static bool takes_constants(const char *type)
{
    static const char *const types[] = { "Conv",
                                         "ConvTranspose",
                                         "BatchNormalization",
                                         "InstanceNormalization",
                                         "LayerNormalization",
                                         "Gemm",
                                         "Clip",
                                         "Pad",
                                         "Resize",
                                         "Upsample",
                                         "Dropout",
                                         "QuantizeLinear",
                                         "DequantizeLinear",
                                         "Pow" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

/* Operators that are computed at import alone: all their inputs are constants. */
static bool is_folded(const char *type)
{
    static const char *const types[] = { "Ceil",   "CumSum",      "Floor", "Greater",
                                         "Less",   "LessOrEqual", "Mod",   "GreaterOrEqual",
                                         "OneHot", "ReduceProd",  "Round", "ScatterND",
                                         "IsNaN" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

struct tally {
    bool verdicts;  /* whole networks one by one: equal, refused or wrong is all that is said */
    bool constants; /* all inputs are constants, which most operators are computed from at import */
    bool networks;  /* whole networks: 1e-4 of the largest output, as sums differ in their order */
    int passed, failed, skipped;
    int by_reason[N_LIMITS];
    char *operators[512]; /* the names of those that we do not have */
    int operator_cases[512], n_operators;
};

static const char *data_folder(void)
{
    const char *given = getenv("ONNX_TESTDATA");
    return given ? given : "/usr/share/libonnx-testdata/data";
}

/* The tensor in a .pb file; NULL with an error. */
static struct host *read_tensor(const char *folder, const char *set, const char *kind, int i,
                                struct err *err)
{
    char *path = text_format("%s/%s/%s_%d.pb", folder, set, kind, i);
    char *bytes = NULL;
    size_t size;
    struct host *host = NULL;
    if (path && file_read(path, (size_t)1 << 30, &bytes, &size, err)) {
        ProtobufCMessage *message =
            onnx_unpack(&onnx__tensor_proto__descriptor, (const uint8_t *)bytes, size, path, err);
        if (message) {
            host = host_from_proto((Onnx__TensorProto *)(void *)message, err);
            protobuf_c_message_free_unpacked(message, NULL);
        }
    }
    free(bytes);
    free(path);
    return host;
}

/* One data set of a case. */
struct run {
    const Onnx__ModelProto *model;
    const char *folder, *set, *file;
    struct host *inputs[MOST_PORTS];
    const char *input_names[MOST_PORTS];
    int n_inputs;
    bool network, constants;
    struct err err;
};

static bool is_initializer(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, name) == 0)
            return true;
    return false;
}

/* Input `name` is used as a later input of an operator that takes constants there, or by one that
 * is computed at import. */
static bool used_as_constant(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            if (strcmp(graph->node[i]->input[k], name) == 0 &&
                ((k && takes_constants(graph->node[i]->op_type)) ||
                 (graph->n_node == 1 && is_folded(graph->node[i]->op_type))))
                return true;
    return false;
}

static bool read_inputs(struct run *run)
{
    const Onnx__GraphProto *graph = run->model->graph;
    for (size_t i = 0; i < graph->n_input; i++) {
        if (is_initializer(graph, graph->input[i]->name))
            continue;
        const Onnx__TypeProto *type = graph->input[i]->type;
        if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            type->tensor_type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16)
            return err_set(&run->err, ERR_FORMAT, "bfloat16"); /* its file says uint16 */
        if (run->n_inputs == MOST_PORTS)
            return err_set(&run->err, ERR_FORMAT, "used for something else");
        struct host *host = read_tensor(run->folder, run->set, "input", run->n_inputs, &run->err);
        if (!host && run->err.kind == ERR_FORMAT && type &&
            type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            err_set(&run->err, ERR_FORMAT, "used for something else");
        if (!host)
            return false;
        run->input_names[run->n_inputs] = graph->input[i]->name;
        run->inputs[run->n_inputs++] = host;
    }
    return true;
}

static bool import(struct run *run, struct graph **out)
{
    struct onnx_bound bound[MOST_PORTS];
    struct onnx_options options = { .bound = bound,
                                    .as_stored = true,
                                    .fold_limit = (int64_t)1 << 28 };
    for (int i = 0; i < run->n_inputs; i++) {
        const struct host *host = run->inputs[i];
        if (host->type == HOST_FLOAT && !run->constants &&
            !used_as_constant(run->model->graph, run->input_names[i]))
            continue;
        bound[options.n_bound++] = (struct onnx_bound){
            .name = run->input_names[i],
            .shape = host->shape,
            .floats = host->type == HOST_FLOAT ? host->floats : NULL,
            .ints = host->type == HOST_INT ? host->ints : NULL,
        };
    }
    if (onnx_read(run->file, &options, out, &run->err))
        return true;
    if (!strstr(run->err.text, "(second output)") && !strstr(run->err.text, "as outputs are not"))
        return false;
    options.outputs = (const char *const *)&run->model->graph->output[0]->name;
    options.n_outputs = 1; /* the first one alone */
    return onnx_read(run->file, &options, out, &run->err);
}

static bool same(struct run *run, const struct shape *shape, const float *got, int i)
{
    struct host *want = read_tensor(run->folder, run->set, "output", i, &run->err);
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    if (!want)
        return false;
    bool ok = shape_equal(shape, &want->shape);
    if (!ok)
        err_set(&run->err, ERR_FORMAT, "output %d is %s, not %s", i, shape_text(shape, a),
                shape_text(&want->shape, b));
    double largest = 0;
    for (int64_t k = 0; k < want->count && run->network; k++)
        largest = fmax(largest, fabs(host_number(want, k)));
    for (int64_t k = 0; ok && k < want->count; k++) {
        double w = host_number(want, k), g = (double)got[k];
        double allowed = run->network ? 1e-4 * largest : ATOL + RTOL * fabs(w);
        ok = fabs(g - w) <= allowed || (isnan(w) && isnan(g)) || w == g;
        if (!ok)
            err_set(&run->err, ERR_FORMAT, "output %d: element %lld is %.9g, not %.9g", i,
                    (long long)k, g, w);
    }
    host_free(want);
    return ok;
}

static bool forward(struct run *run, const struct graph *graph)
{
    struct plan *plan = NULL;
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1 };
    bool ok = plan_new(graph, &options, &plan, &run->err);
    for (int i = 0; ok && i < graph->n_inputs; i++)
        for (int k = 0; k < run->n_inputs; k++)
            if (strcmp(graph->inputs[i].name, run->input_names[k]) == 0)
                memcpy(plan_input(plan, i), run->inputs[k]->floats,
                       (size_t)run->inputs[k]->count * sizeof(float));
    ok = ok && plan_forward(plan, &run->err);
    for (int i = 0; ok && i < graph->n_outputs; i++)
        ok = same(run, graph_shape(graph, graph->outputs[i].value), plan_output(plan, i), i);
    plan_free(plan);
    return ok;
}

/* A network imported for one batch holds for another if the file leaves the batch open: every image
 * twice, all outputs twice. Others may refuse it, but not be wrong. */
static bool forward_doubled(struct run *run, struct graph *graph)
{
    struct plan *plan = NULL;
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1 };
    value_id input = graph->inputs[0].value, output = graph->outputs[0].value;
    struct shape once = *graph_shape(graph, input), twice = once;
    struct shape shape = *graph_shape(graph, output);
    twice.dim[0] *= 2;
    const Onnx__TypeProto *type = run->model->graph->input[0]->type;
    bool open = type->tensor_type->shape->dim[0]->value_case !=
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (!graph_resize(graph, input, twice, &run->err))
        return !open || err_prefix(&run->err, "with the batch doubled");
    bool ok = plan_new(graph, &options, &plan, &run->err);
    size_t bytes = (size_t)shape_count(&once) * sizeof(float);
    for (int i = 0; ok && i < 2; i++)
        memcpy(plan_input(plan, 0) + i * shape_count(&once), run->inputs[0]->floats, bytes);
    ok = ok && plan_forward(plan, &run->err);
    for (int i = 0; ok && i < 2; i++)
        ok = same(run, &shape, plan_output(plan, 0) + i * shape_count(&shape), 0);
    plan_free(plan);
    return ok || err_prefix(&run->err, "with the batch doubled");
}

static void count_operator(struct tally *tally, const char *text)
{
    const char *begin = strstr(text, "operator '");
    char name[64] = "?";
    if (begin)
        sscanf(begin, "operator '%63[^']", name);
    for (int i = 0; i < tally->n_operators; i++)
        if (strcmp(tally->operators[i], name) == 0) {
            tally->operator_cases[i]++;
            return;
        }
    if (tally->n_operators < 512) {
        tally->operators[tally->n_operators] = strdup(name);
        tally->operator_cases[tally->n_operators++] = 1;
    }
}

/* The reason why a failed import is none of our failures; -1 if there is none. */
static int reason_of(const struct err *err)
{
    int found = -1;
    for (int i = 0; i < N_LIMITS; i++)
        if (strstr(err->text, limits[i].text) && (i || strstr(err->text, "operator '")))
            found = i;
    return found;
}

/* What sweep.py reads. Only a file that was read and gives other numbers is wrong. */
static void say_verdict(const struct run *run, bool imported, bool same_numbers)
{
    printf("%s: %s: %s\n",
           same_numbers ? "equal"
           : imported   ? "wrong"
                        : "refused",
           run->folder, same_numbers ? "within 1e-4 of the largest output" : run->err.text);
}

static void run_set(struct run *run, struct tally *tally)
{
    struct graph *graph = NULL;
    bool imported = read_inputs(run) && import(run, &graph);
    if (tally->verdicts) {
        say_verdict(run, imported, imported && forward(run, graph) && forward_doubled(run, graph));
        graph_free(graph);
        for (int i = 0; i < run->n_inputs; i++)
            host_free(run->inputs[i]);
        return;
    }
    int reason = imported ? -1 : reason_of(&run->err);
    if (imported && forward(run, graph) && (!run->network || forward_doubled(run, graph))) {
        tally->passed++;
    } else if (reason >= 0) {
        tally->skipped++;
        tally->by_reason[reason]++;
        if (reason == 0)
            count_operator(tally, run->err.text);
        else if (getenv("ONNX_VERBOSE"))
            printf("skipped: %s: %s\n", run->folder, run->err.text);
    } else {
        tally->failed++;
        printf("FAILED: %s: %s\n", run->folder, run->err.text);
    }
    graph_free(graph);
    for (int i = 0; i < run->n_inputs; i++)
        host_free(run->inputs[i]);
}

/* Where ONNX's numbers are others than those of ONNX Runtime and PyTorch, ours are the latter: the
 * last pixel of a resized image is that of the image, not of its size times a scale, which need not
 * be whole; bfloat16 is rounded to, not cut off. */
static bool has_other_numbers(const char *folder)
{
    return strstr(folder, "/test_resize_downsample_scales_linear_align_corners") != NULL ||
           strstr(folder, "/test_resize_downsample_scales_cubic_align_corners") != NULL ||
           strstr(folder, "/test_cast_FLOAT_to_BFLOAT16") != NULL;
}

static void run_case(const char *folder, struct tally *tally)
{
    if (has_other_numbers(folder)) {
        printf("skipped: %s: ONNX Runtime has other numbers\n", folder);
        tally->skipped++;
        return;
    }
    char *bytes = NULL, *path = text_format("%s/model.onnx", folder);
    size_t size;
    struct err err = { 0 };
    Onnx__ModelProto *model;
    bool ok = file_read(path, (size_t)1 << 30, &bytes, &size, &err) &&
              onnx_model_parse((const uint8_t *)bytes, size, path, &model, &err);
    if (!ok && tally->verdicts)
        printf("refused: %s: %s\n", folder, err.text);
    else if (!ok)
        fail_msg("%s", err.text);
    for (int i = 0; ok; i++) {
        char set[32];
        snprintf(set, sizeof set, "test_data_set_%d", i);
        char *set_folder = text_format("%s/%s", folder, set);
        bool there = file_is_folder(set_folder);
        free(set_folder);
        if (!there)
            break;
        struct run run = { .model = model,
                           .folder = folder,
                           .set = set,
                           .file = path,
                           .network = tally->networks,
                           .constants = tally->constants };
        run_set(&run, tally);
    }
    if (ok)
        onnx__model_proto__free_unpacked(model, NULL);
    free(bytes);
    free(path);
}

/* at_least: so many passed when this was written; fewer are a step back. */
static void run_group(const char *group, struct tally tally, int at_least)
{
    enum { MOST = 4096 };
    static char *names[MOST];
    size_t n = 0;
    struct dirent *entry;
    char *folder = text_format("%s/%s", data_folder(), group);
    DIR *listing = opendir(folder);
    while (listing && n < MOST && (entry = readdir(listing)))
        if (entry->d_name[0] != '.')
            names[n++] = text_format("%s/%s", folder, entry->d_name);
    if (listing)
        closedir(listing);
    qsort(names, n, sizeof *names, names_order);
    for (size_t i = 0; i < n; i++) {
        run_case(names[i], &tally);
        free(names[i]);
    }
    printf("%s: %d passed, %d failed, %d skipped\n", group, tally.passed, tally.failed,
           tally.skipped);
    for (int i = 0; i < N_LIMITS; i++)
        if (tally.by_reason[i])
            printf("  skipped %3d: %s\n", tally.by_reason[i], limits[i].reason);
    printf("    operators that we do not have:");
    for (int i = 0; i < tally.n_operators; i++) {
        printf(" %s(%d)", tally.operators[i], tally.operator_cases[i]);
        free(tally.operators[i]);
    }
    printf("\n");
    free(folder);
    assert_int_equal(tally.failed, 0);
    assert_true(tally.passed >= at_least);
}

static void single_operators(void **state)
{
    (void)state;
    run_group("node", (struct tally){ 0 }, 543);
}

/* The same with constants in place of all inputs. */
static void single_operators_on_constants(void **state)
{
    (void)state;
    run_group("node", (struct tally){ .constants = true }, 575);
}

static void layers_converted_from_pytorch(void **state)
{
    (void)state;
    run_group("pytorch-converted", (struct tally){ 0 }, 69);
}

static void operators_of_pytorch(void **state)
{
    (void)state;
    run_group("pytorch-operator", (struct tally){ 0 }, 32);
}

static void simple_models(void **state)
{
    (void)state;
    run_group("simple", (struct tally){ 0 }, 5);
}

/* Whole networks in the same layout: FOLDER of a data folder in ONNX_TESTDATA. */
static void whole_networks(void **state)
{
    run_group(*state, (struct tally){ .networks = true }, 1);
}

/* One of them, NAME in FOLDER, with its verdict on standard output. */
static int one_network(const char *folder, const char *name)
{
    struct tally tally = { .networks = true, .verdicts = true };
    char *path = text_format("%s/%s/%s", data_folder(), folder, name);
    run_case(path, &tally);
    free(path);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_operators),
        cmocka_unit_test(single_operators_on_constants),
        cmocka_unit_test(layers_converted_from_pytorch),
        cmocka_unit_test(operators_of_pytorch),
        cmocka_unit_test(simple_models),
    };
    const struct CMUnitTest given[] = {
        cmocka_unit_test_prestate(whole_networks, argc > 1 ? argv[1] : NULL),
    };
    if (!file_is_folder(data_folder())) {
        printf("skipped: Debian's libonnx-testdata is not installed\n");
        return 77;
    }
    if (argc > 2)
        return one_network(argv[1], argv[2]);
    return argc > 1 ? cmocka_run_group_tests(given, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
