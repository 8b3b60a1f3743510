/* layers.c: names of layers (graph_alias) in an ONNX file.
 *
 * A file of ours keeps them in its metadata, "microtome.layers": a JSON object of tensors by alias,
 * {"layer4": "layer4", "layer4.1": "layer4"}; the tensor itself has the shortest of its aliases as
 * its name, so that other programs find it too. In a file of another program every tensor and every
 * node is a layer under the name that it has there, and so is every module of PyTorch's. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "net/onnx/build.h"
#include "net/onnx/import.h"
#include "net/onnx/model.h"

const char *onnx_layer_name(const struct graph *graph, value_id value)
{
    const char *shortest = NULL;
    for (int i = 0; i < graph->n_aliases; i++) {
        const char *name = graph->aliases[i].name;
        if (graph->aliases[i].value == value && (!shortest || strlen(name) < strlen(shortest)))
            shortest = name;
    }
    return shortest;
}

char *onnx_layers_text(struct onnx_builder *b)
{
    const struct graph *graph = b->graph;
    struct json_out json;
    char *text = NULL, *kept = NULL;
    size_t size = 0;
    FILE *stream =
        graph->n_aliases && b->err.kind == ERR_NONE ? open_memstream(&text, &size) : NULL;
    if (!stream)
        return NULL;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    for (int i = 0; i < graph->n_aliases; i++)
        json_out_text(&json, graph->aliases[i].name, b->names[graph->aliases[i].value]);
    json_out_close_object(&json);
    json_out_end(&json);
    if (fclose(stream) == 0)
        kept = onnx_text(b, "%s", text);
    else
        err_memory(&b->err, "the ONNX file");
    free(text);
    return kept;
}

static void give(struct onnx_import *im, const char *alias, const struct onnx_name *tensor)
{
    if (tensor && tensor->value != NO_VALUE && graph_can_alias(im->graph, alias, tensor->value))
        graph_alias(im->graph, alias, tensor->value);
}

/* Those of the file's metadata. A tensor that was not imported has no layer. */
static bool give_recorded(struct onnx_import *im, const char *text, struct err *err)
{
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why), *tensor;
    const char *alias;
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(err, ERR_FORMAT, "%s: %s in the metadata: not a JSON object of names",
                       im->path, ONNX_LAYERS_KEY);
    }
    json_object_foreach(root, alias, tensor)
        give(im, alias, onnx_name_find(im, json_string_value(tensor)));
    json_decref(root);
    return true;
}

bool onnx_layers_read(struct onnx_import *im, const Onnx__ModelProto *model, struct err *err)
{
    const Onnx__GraphProto *proto = im->proto;
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = model->metadata_props[i];
        if (note->key && note->value && strcmp(note->key, ONNX_LAYERS_KEY) == 0)
            return give_recorded(im, note->value, err);
    }
    if (!onnx_modules_read(im, err))
        return false;
    for (size_t i = 0; i < proto->n_node; i++) {
        onnx_node *node = proto->node[i];
        for (size_t k = 0; k < node->n_output; k++)
            give(im, node->output[k], onnx_name_find(im, node->output[k]));
    }
    for (size_t i = 0; i < proto->n_node; i++) { /* nodes that others stand for, such as Identity */
        onnx_node *node = proto->node[i];
        if (node->n_output && node->name && graph_find(im->graph, node->name) == NO_VALUE)
            give(im, node->name, onnx_name_find(im, node->output[0]));
    }
    return true;
}
