/* export.c: a graph as an ONNX model: names, inputs, outputs, weights, and the file. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/version.h"
#include "net/onnx/onnx.h"
#include "net/graph/transform.h"
#include "net/onnx/build.h"
#include "net/onnx/model.h"

#define OPSET 17
#define IR_VERSION 8
#define FILE_LIMIT ((size_t)INT32_MAX)

static bool taken(const struct onnx_builder *b, const char *name)
{
    for (int32_t i = 0; i < b->graph->n_values; i++)
        if (b->names[i] && strcmp(b->names[i], name) == 0)
            return true;
    return false;
}

static void give_name(struct onnx_builder *b, value_id value, const char *wanted)
{
    const char *name = wanted;
    while (taken(b, name) && b->err.kind == ERR_NONE)
        name = onnx_text(b, "%s_", name);
    b->names[value] = name;
}

/* All values share one space of names: inputs and weights first, then outputs, then the rest. */
static void name_values(struct onnx_builder *b)
{
    const struct graph *graph = b->graph;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind != VALUE_NODE)
            give_name(b, i, graph->values[i].name);
    for (int i = 0; i < graph->n_outputs; i++)
        if (!b->names[graph->outputs[i].value])
            give_name(b, graph->outputs[i].value, graph->outputs[i].name);
    for (int32_t i = 0; i < graph->n_values; i++) {
        const char *layer = b->names[i] ? NULL : onnx_layer_name(graph, i);
        if (!b->names[i])
            give_name(b, i, layer ? layer : graph->values[i].name);
    }
}

/* Whether the file has use for a weight: one that is standardised is written as it then is. */
static bool is_written(const struct graph *graph, value_id parameter)
{
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i].value == parameter)
            return true;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] == parameter &&
                graph->nodes[i].op->kind != OP_STANDARDIZE)
                return true;
    return false;
}

static bool add_weights(struct onnx_builder *b)
{
    const struct graph *graph = b->graph;
    for (int32_t i = 0; i < graph->n_values; i++) {
        if (!graph_is_parameter(graph, i) || !is_written(graph, i))
            continue;
        const float *floats = graph_data(graph, i);
        if (!floats)
            return err_set(&b->err, ERR_USAGE, "the parameter %s has no values yet",
                           graph->values[i].name);
        onnx_weight(b, b->names[i], &graph->values[i].shape, floats);
    }
    return true;
}

static void add_ports(struct onnx_builder *b, Onnx__GraphProto *proto, bool batch)
{
    const struct graph *graph = b->graph;
    proto->input = onnx_keep(b, (size_t)graph->n_inputs * sizeof(void *));
    proto->output = onnx_keep(b, (size_t)graph->n_outputs * sizeof(void *));
    for (int i = 0; i < graph->n_inputs && proto->input; i++) {
        value_id value = graph->inputs[i].value;
        proto->input[proto->n_input++] =
            onnx_value_info(b, b->names[value], graph_shape(graph, value), batch);
    }
    for (int i = 0; i < graph->n_outputs && proto->output; i++) {
        value_id value = graph->outputs[i].value;
        const char *name = b->names[value];
        if (strcmp(name, graph->outputs[i].name) != 0) { /* a second name, or an input */
            const char *second = graph->outputs[i].name;
            if (taken(b, second))
                second = onnx_text(b, "%s_output", second);
            onnx_emit(b, "Identity", second, &name, 1, second);
            name = second;
        }
        proto->output[proto->n_output++] =
            onnx_value_info(b, name, graph_shape(graph, value), batch);
    }
}

struct file_buffer {
    ProtobufCBuffer base;
    FILE *stream;
};

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
    struct file_buffer *out = (struct file_buffer *)(void *)buffer;
    fwrite(data, 1, bytes, out->stream);
}

/* Packs straight into the file: the weights are not copied. */
static bool write_model(const Onnx__ModelProto *model, const char *path, struct err *err)
{
    struct file_out out;
    if (protobuf_c_message_get_packed_size(&model->base) > FILE_LIMIT)
        return err_set(err, ERR_USAGE,
                       "%s: the network is larger than 2 GB, the limit of an ONNX file", path);
    if (!file_out_open(&out, path, err))
        return false;
    struct file_buffer buffer = { { append }, out.stream };
    protobuf_c_message_pack_to_buffer(&model->base, &buffer.base);
    return file_out_commit(&out, err);
}

enum { NOTES = 2 };

/* The metadata: config.json and the names of layers, where there are any. Returns how many. */
static size_t add_notes(struct onnx_builder *b, const struct onnx_write_options *options,
                        Onnx__StringStringEntryProto notes[NOTES],
                        Onnx__StringStringEntryProto *list[NOTES])
{
    const char *const keys[NOTES] = { ONNX_CONFIG_KEY, ONNX_LAYERS_KEY };
    const char *const texts[NOTES] = { options->config, onnx_layers_text(b) };
    size_t n = 0;
    for (int i = 0; i < NOTES; i++) {
        if (!texts[i])
            continue;
        onnx__string_string_entry_proto__init(&notes[n]);
        notes[n].key = onnx_text(b, "%s", keys[i]);
        notes[n].value = onnx_text(b, "%s", texts[i]);
        list[n] = &notes[n], n++;
    }
    return n;
}

static bool compose_and_write(struct onnx_builder *b, const char *path,
                              const struct onnx_write_options *options, struct err *err)
{
    const struct graph *graph = b->graph;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto proto = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets = &set;
    name_values(b);
    if (!add_weights(b))
        return false;
    for (int32_t i = 0; i < graph->n_nodes && b->err.kind == ERR_NONE; i++)
        onnx_export_node(b, &graph->nodes[i]);
    add_ports(b, &proto, !options->fixed_batch);
    proto.name = onnx_text(b, "%s", *graph->name ? graph->name : "network");
    model.producer_name = onnx_text(b, "%s", options->producer ? options->producer : "microtome");
    model.producer_version = onnx_text(b, "%s", MICROTOME_VERSION);
    if (b->err.kind != ERR_NONE)
        return false;
    proto.node = b->nodes, proto.n_node = b->n_nodes;
    proto.initializer = b->tensors, proto.n_initializer = b->n_tensors;
    set.domain = onnx_text(b, "%s", "");
    set.has_version = 1, set.version = OPSET;
    model.has_ir_version = 1, model.ir_version = IR_VERSION;
    model.opset_import = &sets, model.n_opset_import = 1;
    model.graph = &proto;
    Onnx__StringStringEntryProto notes[NOTES], *list[NOTES];
    model.metadata_props = list;
    model.n_metadata_props = add_notes(b, options, notes, list);
    return b->err.kind == ERR_NONE && write_model(&model, path, err);
}

bool onnx_write(const struct graph *graph, const char *path,
                const struct onnx_write_options *options, struct err *err)
{
    static const struct onnx_write_options defaults = { 0 };
    struct graph *expanded = NULL;
    if (!graph_ok(graph, err) || !transform_expand_attention(graph, &expanded, err))
        return false;
    struct onnx_builder b = { .graph = expanded };
    b.names = calloc((size_t)expanded->n_values + 1, sizeof *b.names);
    bool ok = b.names ? compose_and_write(&b, path, options ? options : &defaults, err)
                      : err_memory(err, path);
    if (!ok && b.err.kind != ERR_NONE)
        err_set(err, b.err.kind, "%s: %s", path, b.err.text);
    onnx_build_free(&b);
    free(b.names);
    graph_free(expanded);
    return ok;
}
