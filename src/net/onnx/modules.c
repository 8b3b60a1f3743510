/* modules.c: the modules of a PyTorch network as names of layers. PyTorch's exporter names a node
 * by the modules that it was called in, "/layer1/layer1.0/conv1/Conv". The output of a module is
 * the one value that is made inside it and used outside; where several are, the module has no name.
 */
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "net/onnx/import.h"

#define MOST_DEPTH 16 /* modules within one another; keeps odd files short */

/* A value that leaves a module. */
struct leaving {
    const char *scope; /* "/layer1/layer1.0", not terminated */
    size_t length;
    value_id value;
};

struct leavings {
    struct leaving *items;
    int64_t n, room;
};

/* The ends of the modules in a node's name: how long "/layer1", "/layer1/layer1.0", .. are. Returns
 * how many; 0 if the name is not PyTorch's. */
static int scope_ends(onnx_node *node, size_t ends[MOST_DEPTH])
{
    const char *name = node->name ? node->name : "";
    int n = 0;
    for (const char *at = name; *name == '/' && (at = strchr(at + 1, '/'));) {
        if (n == MOST_DEPTH)
            return 0;
        ends[n++] = (size_t)(at - name);
    }
    return n;
}

/* The value of node `from` is used by node `to`; NULL: it is an output of the model. */
static bool leave(struct leavings *all, onnx_node *from, onnx_node *to, value_id value,
                  struct err *err)
{
    size_t from_ends[MOST_DEPTH], to_ends[MOST_DEPTH];
    int n = scope_ends(from, from_ends), n_to = to ? scope_ends(to, to_ends) : 0, shared = 0;
    while (shared < n && shared < n_to && from_ends[shared] == to_ends[shared] &&
           strncmp(from->name, to->name, from_ends[shared]) == 0)
        shared++;
    for (int i = shared; i < n; i++) {
        if (!array_grow(&all->items, &all->room, all->n + 1, sizeof *all->items, "the layers", err))
            return false;
        all->items[all->n++] = (struct leaving){ from->name, from_ends[i], value };
    }
    return true;
}

/* What a name means as an activation: NO_VALUE if it was fused into another. False: it is none. */
static bool is_activation(const struct onnx_import *im, const struct onnx_name *name)
{
    return name && name->producer >= 0 && !name->host &&
           (name->value == NO_VALUE || !graph_is_parameter(im->graph, name->value));
}

static bool find_leaving(struct onnx_import *im, struct leavings *all, struct err *err)
{
    const Onnx__GraphProto *proto = im->proto;
    bool ok = true;
    for (size_t i = 0; ok && i < proto->n_node; i++)
        for (size_t k = 0; ok && k < proto->node[i]->n_input; k++) {
            const struct onnx_name *x = onnx_name_find(im, proto->node[i]->input[k]);
            if (is_activation(im, x))
                ok = leave(all, proto->node[x->producer], proto->node[i], x->value, err);
        }
    for (size_t i = 0; ok && i < proto->n_output; i++) {
        const struct onnx_name *x = onnx_name_find(im, proto->output[i]->name);
        if (is_activation(im, x))
            ok = leave(all, proto->node[x->producer], NULL, x->value, err);
    }
    return ok;
}

static int by_scope(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    int order = strncmp(x->scope, y->scope, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* "/layer1/layer1.0/conv1" -> "layer1.0.conv1", the caller's: a child of a Sequential repeats its
 * parent's name. */
static char *module_name(const struct leaving *of)
{
    char *name = calloc(of->length + 1, 1);
    size_t n = 0, last = 0, next; /* last: where the parent begins in the name */
    for (size_t at = 1; name && at < of->length; at = next + 1) {
        const char *child = of->scope + at, *end = memchr(child, '/', of->length - at);
        next = end ? (size_t)(end - of->scope) : of->length;
        size_t parent = n - last;
        if (parent && next - at > parent && strncmp(child, name + last, parent) == 0 &&
            child[parent] == '.')
            n = last;
        else if (n)
            name[n++] = '.', last = n;
        memcpy(name + n, child, next - at);
        n += next - at;
        name[n] = 0;
    }
    return name;
}

/* Keeps one item of every module that exactly one value leaves. */
static void keep_outputs(struct leavings *all)
{
    int64_t kept = 0;
    qsort(all->items, (size_t)all->n, sizeof *all->items, by_scope);
    for (int64_t i = 0, end; i < all->n; i = end) {
        bool one = all->items[i].value != NO_VALUE;
        for (end = i + 1; end < all->n && by_scope(&all->items[i], &all->items[end]) == 0; end++)
            one = one && all->items[end].value == all->items[i].value;
        if (one)
            all->items[kept++] = all->items[i];
    }
    all->n = kept;
}

/* In the order of the network, inner modules first. */
static int by_value(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->length != y->length ? (x->length < y->length ? 1 : -1) : by_scope(a, b);
}

bool onnx_modules_read(struct onnx_import *im, struct err *err)
{
    struct leavings all = { NULL, 0, 0 };
    bool ok = find_leaving(im, &all, err);
    if (ok && all.n) {
        keep_outputs(&all);
        qsort(all.items, (size_t)all.n, sizeof *all.items, by_value);
    }
    for (int64_t i = 0; ok && i < all.n; i++) {
        char *name = module_name(&all.items[i]);
        ok = name || err_memory(err, im->path);
        if (ok && !onnx_name_find(im, name) && /* names in the file come first */
            graph_can_alias(im->graph, name, all.items[i].value))
            graph_alias(im->graph, name, all.items[i].value);
        free(name);
    }
    free(all.items);
    return ok;
}
