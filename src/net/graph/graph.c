/* graph.c: values, nodes and parameters of a graph, and the shapes that follow from one another. */
#include "net/graph/graph.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"
#include "net/graph/graph_names.h"

struct graph *graph_new(const char *name)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->name = strdup(name);
    if (!graph->name) {
        free(graph);
        return NULL;
    }
    return graph;
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    for (int32_t i = 0; i < graph->n_values; i++) {
        free(graph->values[i].name);
        buffer_release(graph->values[i].data);
    }
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        free(graph->nodes[i].name);
        free(graph->nodes[i].inputs);
    }
    for (int i = 0; i < graph->n_inputs; i++)
        free(graph->inputs[i].name);
    for (int i = 0; i < graph->n_outputs; i++)
        free(graph->outputs[i].name);
    graph_names_free(graph);
    free(graph->values), free(graph->nodes), free(graph->inputs), free(graph->outputs);
    free(graph->name);
    free(graph);
}

static value_id failed(struct graph *graph, enum err_kind kind, const char *name, const char *fact)
{
    if (graph->err.kind == ERR_NONE)
        err_set(&graph->err, kind, "%s: %s", name, fact);
    return NO_VALUE;
}

bool graph_ok(const struct graph *graph, struct err *err)
{
    if (graph->err.kind != ERR_NONE)
        return err_set(err, graph->err.kind, "%s%s%s", graph->name, *graph->name ? ": " : "",
                       graph->err.text);
    if (graph->n_outputs == 0)
        return err_set(err, ERR_FORMAT, "%s: the network has no output", graph->name);
    return true;
}

static value_id add_value(struct graph *graph, enum value_kind kind, const char *name,
                          struct shape shape)
{
    if (graph->err.kind != ERR_NONE)
        return NO_VALUE;
    if (!shape_check(&shape, name, &graph->err))
        return NO_VALUE;
    if (kind != VALUE_NODE && graph_names_has(graph, false, name))
        return failed(graph, ERR_FORMAT, name, "the name is used twice");
    if (graph_names_find(graph, NAME_ALIAS, name) >= 0)
        return failed(graph, ERR_FORMAT, name, "the name is an alias of another value");
    bool room = array_grow(&graph->values, &graph->room_values, graph->n_values + 1,
                           sizeof *graph->values, name, NULL);
    char *copy = room ? strdup(name) : NULL;
    if (!copy)
        return failed(graph, ERR_MEMORY, name, "out of memory");
    graph->values[graph->n_values++] =
        (struct value){ .kind = kind, .name = copy, .shape = shape, .node = -1 };
    if (!graph_names_add(graph, NAME_VALUE, graph->n_values - 1))
        return failed(graph, ERR_MEMORY, name, "out of memory");
    return graph->n_values - 1;
}

bool graph_add_port(struct graph_port **ports, int *count, const char *name, value_id value)
{
    struct graph_port *larger = reallocarray(*ports, (size_t)*count + 1, sizeof *larger);
    if (!larger)
        return false;
    *ports = larger;
    larger[*count] = (struct graph_port){ strdup(name), value };
    if (!larger[*count].name)
        return false;
    (*count)++;
    return true;
}

value_id graph_input(struct graph *graph, const char *name, struct shape shape)
{
    value_id value = add_value(graph, VALUE_INPUT, name, shape);
    if (value == NO_VALUE)
        return NO_VALUE;
    if (!graph_add_port(&graph->inputs, &graph->n_inputs, name, value))
        return failed(graph, ERR_MEMORY, name, "out of memory");
    return value;
}

static bool add_output(struct graph *graph, const char *name, value_id value)
{
    return graph_add_port(&graph->outputs, &graph->n_outputs, name, value) &&
           graph_names_add(graph, NAME_OUTPUT, graph->n_outputs - 1);
}

value_id graph_output(struct graph *graph, const char *name, value_id value)
{
    if (value == NO_VALUE || graph->err.kind != ERR_NONE)
        return failed(graph, ERR_FORMAT, name, "the output has no value");
    if (value < 0 || value >= graph->n_values || graph_is_parameter(graph, value))
        return failed(graph, ERR_FORMAT, name, "the output is not an activation");
    if (graph_names_find(graph, NAME_OUTPUT, name) >= 0)
        return failed(graph, ERR_FORMAT, name, "two outputs have this name");
    int32_t alias = graph_names_find(graph, NAME_ALIAS, name);
    if (alias >= 0 && graph->aliases[alias].value != value)
        return failed(graph, ERR_FORMAT, name, "the name is an alias of another value");
    if (!add_output(graph, name, value))
        return failed(graph, ERR_MEMORY, name, "out of memory");
    return value;
}

value_id graph_parameter(struct graph *graph, const char *name, struct shape shape)
{
    return add_value(graph, VALUE_PARAMETER, name, shape);
}

value_id graph_buffer(struct graph *graph, const char *name, struct shape shape)
{
    return add_value(graph, VALUE_BUFFER, name, shape);
}

value_id graph_constant(struct graph *graph, const char *name, struct shape shape,
                        const float *data)
{
    value_id value = add_value(graph, VALUE_BUFFER, name, shape);
    if (value == NO_VALUE)
        return NO_VALUE;
    struct buffer *floats = buffer_new(shape_count(&shape));
    if (!floats)
        return failed(graph, ERR_MEMORY, name, "out of memory");
    memcpy(buffer_data(floats), data, (size_t)shape_count(&shape) * sizeof *data);
    graph->values[value].data = floats;
    return value;
}

/* The shape of the node's output from the present shapes of its inputs. */
static bool node_shape(const struct graph *graph, const struct node *node, struct shape *out,
                       struct err *err)
{
    const struct shape **in = calloc((size_t)node->n_inputs, sizeof *in);
    if (!in)
        return err_memory(err, node->name);
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NO_VALUE)
            in[i] = &graph->values[node->inputs[i]].shape;
    bool ok = node->op->shape(&node->attr, in, node->n_inputs, out, err) &&
              shape_check(out, "the output", err);
    free(in);
    if (!ok) {
        err_prefix(err, node->op->name);
        return err_prefix(err, node->name);
    }
    return true;
}

static struct storage node_storage(const struct graph *graph, const struct node *node)
{
    if (!node->op->storage)
        return (struct storage){ 0 };
    return node->op->storage(&node->attr, &graph->values[node->inputs[0]].storage);
}

static bool inputs_fit(struct graph *graph, const struct op *op, const char *name,
                       const value_id *inputs, int n_inputs)
{
    if (n_inputs < op->min_inputs || n_inputs > op->max_inputs)
        return err_set(&graph->err, ERR_FORMAT, "%s: %s has %d inputs; %d to %d are allowed", name,
                       op->name, n_inputs, op->min_inputs, op->max_inputs);
    for (int i = 0; i < n_inputs; i++) {
        bool absent_ok = i < 32 && (op->optional >> i & 1);
        if (inputs[i] == NO_VALUE && absent_ok)
            continue;
        if (inputs[i] < 0 || inputs[i] >= graph->n_values)
            return err_set(&graph->err, ERR_FORMAT, "%s: input %d of %s is not a value", name, i,
                           op->name);
    }
    return true;
}

static bool prepare_node(struct graph *graph, struct node *node, const value_id *inputs,
                         const union attr *attr)
{
    const struct op *op = node->op;
    if (!inputs_fit(graph, op, node->name, inputs, node->n_inputs))
        return false;
    if (graph_names_has(graph, true, node->name))
        return err_set(&graph->err, ERR_FORMAT, "%s: two nodes have this name", node->name);
    node->inputs = calloc((size_t)node->n_inputs, sizeof *node->inputs);
    if (!node->inputs)
        return err_memory(&graph->err, node->name);
    memcpy(node->inputs, inputs, (size_t)node->n_inputs * sizeof *inputs);
    if (attr)
        node->attr = *attr;
    if (op->complete)
        op->complete(&node->attr);
    if (!op_check_attr(op, &node->attr, &graph->err)) {
        err_prefix(&graph->err, op->name);
        return err_prefix(&graph->err, node->name);
    }
    return true;
}

/* "relu_12", or with underscores behind it where that is the name of something else. The caller's.
 */
static char *make_name(const struct graph *graph, const struct op *op)
{
    char *name = text_format("%s_%d", op->name, (int)graph->n_nodes);
    while (name &&
           (graph_names_has(graph, true, name) || graph_names_find(graph, NAME_ALIAS, name) >= 0)) {
        char *longer = text_format("%s_", name);
        free(name);
        name = longer;
    }
    return name;
}

value_id graph_node(struct graph *graph, enum op_kind kind, const char *name,
                    const value_id *inputs, int n_inputs, const union attr *attr)
{
    if (graph->err.kind != ERR_NONE)
        return NO_VALUE;
    const struct op *op = op_get(kind);
    struct node node = { .op = op, .n_inputs = n_inputs };
    struct shape shape;
    value_id output = NO_VALUE;
    node.name = name ? strdup(name) : make_name(graph, op);
    if (!node.name) {
        err_memory(&graph->err, op->name);
        goto done;
    }
    if (!prepare_node(graph, &node, inputs, attr) || !node_shape(graph, &node, &shape, &graph->err))
        goto done;
    if (!array_grow(&graph->nodes, &graph->room_nodes, graph->n_nodes + 1, sizeof *graph->nodes,
                    node.name, &graph->err))
        goto done;
    output = add_value(graph, VALUE_NODE, node.name, shape);
    if (output == NO_VALUE)
        goto done;
    graph->values[output].node = graph->n_nodes;
    graph->values[output].storage = node_storage(graph, &node);
    node.output = output;
    graph->nodes[graph->n_nodes++] = node;
    return output;
done:
    free(node.name), free(node.inputs);
    return NO_VALUE;
}

bool graph_infer(struct graph *graph, struct err *err)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (!node_shape(graph, node, &graph->values[node->output].shape, err))
            return false;
    }
    return true;
}

bool graph_resize(struct graph *graph, value_id input, struct shape shape, struct err *err)
{
    if (input < 0 || input >= graph->n_values || graph->values[input].kind != VALUE_INPUT)
        return err_set(err, ERR_USAGE, "%s: not an input of the network", graph->name);
    struct value *value = &graph->values[input];
    struct shape old = value->shape;
    if (!shape_check(&shape, value->name, err))
        return false;
    value->shape = shape;
    if (graph_infer(graph, err))
        return true;
    value->shape = old;
    graph_infer(graph, NULL);
    return false;
}

bool graph_copy(const struct graph *graph, struct graph **out, struct err *err)
{
    struct graph *copy = graph_new(graph->name);
    if (!copy)
        return err_memory(err, graph->name);
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *from = &graph->values[i];
        value_id id = add_value(copy, from->kind, from->name, from->shape);
        if (id == NO_VALUE)
            break;
        copy->values[id].node = from->node;
        copy->values[id].storage = from->storage;
        copy->values[id].init = from->init;
        copy->values[id].data = from->data ? buffer_share(from->data) : NULL;
    }
    copy->nodes = calloc((size_t)graph->n_nodes + 1, sizeof *copy->nodes);
    copy->room_nodes = copy->nodes ? graph->n_nodes + 1 : 0;
    bool ok = copy->nodes && copy->err.kind == ERR_NONE;
    for (int32_t i = 0; ok && i < graph->n_nodes; i++) {
        struct node *node = &copy->nodes[copy->n_nodes++];
        *node = graph->nodes[i];
        node->name = strdup(graph->nodes[i].name);
        node->inputs = calloc((size_t)node->n_inputs, sizeof *node->inputs);
        ok = node->name && node->inputs;
        if (ok)
            memcpy(node->inputs, graph->nodes[i].inputs,
                   (size_t)node->n_inputs * sizeof *node->inputs);
    }
    for (int i = 0; ok && i < graph->n_inputs; i++)
        ok = graph_add_port(&copy->inputs, &copy->n_inputs, graph->inputs[i].name,
                            graph->inputs[i].value);
    for (int i = 0; ok && i < graph->n_outputs; i++)
        ok = add_output(copy, graph->outputs[i].name, graph->outputs[i].value);
    for (int i = 0; ok && i < graph->n_aliases; i++)
        ok = graph_alias(copy, graph->aliases[i].name, graph->aliases[i].value) != NO_VALUE;
    if (!ok) {
        graph_free(copy);
        return err_memory(err, graph->name);
    }
    *out = copy;
    return true;
}

const struct shape *graph_shape(const struct graph *graph, value_id value)
{
    return &graph->values[value].shape;
}

bool graph_is_parameter(const struct graph *graph, value_id value)
{
    enum value_kind kind = graph->values[value].kind;
    return kind == VALUE_PARAMETER || kind == VALUE_BUFFER;
}

int graph_users(const struct graph *graph, value_id value)
{
    int users = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            users += graph->nodes[i].inputs[k] == value;
    for (int i = 0; i < graph->n_outputs; i++)
        users += graph->outputs[i].value == value;
    return users;
}

const struct node *graph_only_user(const struct graph *graph, value_id value)
{
    const struct node *user = NULL;
    if (graph_users(graph, value) != 1)
        return NULL;
    for (int32_t i = 0; i < graph->n_nodes && !user; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] == value)
                user = &graph->nodes[i];
    return user;
}

const struct node *graph_maker(const struct graph *graph, value_id value)
{
    bool made = value != NO_VALUE && graph->values[value].kind == VALUE_NODE;
    return made ? &graph->nodes[graph->values[value].node] : NULL;
}

bool graph_pools_maps(const struct graph *graph, const struct node *node)
{
    const struct adaptive_attr *adaptive = &node->attr.adaptive;
    if (graph_shape(graph, node->inputs[0])->rank != 4)
        return false;
    switch ((int)node->op->kind) {
    case OP_GLOBAL_AVERAGE_POOL:
    case OP_GLOBAL_MAX_POOL:
    case OP_GLOBAL_LSE_POOL:
    case OP_ATTENTION_POOL:
        return true;
    case OP_ADAPTIVE_AVERAGE_POOL:
        return adaptive->size[0] == 1 && adaptive->size[1] == 1;
    case OP_REDUCE_MEAN:
        return node->attr.reduce.axes == (1u << 2 | 1u << 3);
    default:
        return false;
    }
}

int64_t graph_parameter_count(const struct graph *graph)
{
    int64_t count = 0;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER)
            count += shape_count(&graph->values[i].shape);
    return count;
}
