/* transform_space_window.c: layers of a divided map that read a neighbourhood: which cells of the
 * input every part needs, and what is left of the padding, which is at the border of the whole map
 * only. */
#include "base/divide.h"
#include "net/graph/space.h"

static int64_t between(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* A window along one axis. */
struct window {
    int64_t reach, stride;
    int64_t pad[2]; /* in front, behind */
};

static struct window window_of(const struct node *node, int axis)
{
    bool conv = node->op->kind == OP_CONV;
    const struct conv_attr *c = &node->attr.conv;
    const struct pool_attr *p = &node->attr.pool;
    int64_t kernel = conv ? c->kernel[axis] : p->kernel[axis];
    int64_t dilation = conv ? c->dilation[axis] : p->dilation[axis];
    const int64_t *pad = conv ? c->pad : p->pad;
    return (struct window){ (kernel - 1) * dilation + 1,
                            conv ? c->stride[axis] : p->stride[axis],
                            { pad[axis], pad[2 + axis] } };
}

/* A cell belongs to whom the middle of its window belongs to. */
static void divide_windows(const struct window *w, const struct space_axis *in, int parts,
                           int64_t extent, struct space_axis *out)
{
    int64_t middle = (w->reach - 1) / 2 - w->pad[0];
    for (int p = 0; p <= parts; p++)
        out->cuts[p] = between(-floor_div(middle - in->cuts[p], w->stride), 0, extent);
    out->cuts[0] = 0, out->cuts[parts] = extent;
}

/* The cells that the windows of part p read, and the padding that it keeps: that of the whole map,
 * where they reach beyond it. The last part has all that is left, as windows at the end depend on
 * it (ceil_mode). Cells behind the last window, too few for another one, may stay. */
static void read_windows(const struct window *w, const struct space_axis *in,
                         const struct space_axis *out, int parts, int p, struct space_range *want,
                         int64_t pad[2])
{
    int64_t extent = in->cuts[parts];
    int64_t begin = out->cuts[p] * w->stride - w->pad[0];
    int64_t end = (out->cuts[p + 1] - 1) * w->stride - w->pad[0] + w->reach;
    pad[0] = begin < 0 ? -begin : 0;
    pad[1] = end > extent ? end - extent : 0;
    *want = (struct space_range){ begin < 0 ? 0 : begin, end < extent ? end : extent };
    if (p == parts - 1)
        *want = (struct space_range){ want->begin, extent }, pad[1] = w->pad[1];
    else if (want->end < in->cuts[p + 1] && in->cuts[p + 1] - want->end < w->stride)
        want->end = in->cuts[p + 1];
}

/* Every part has cells of every map. */
static bool all_have_cells(const struct space *s, const struct node *node,
                           const struct space_axis axes[2], struct err *err)
{
    for (int i = 0; i < 2; i++)
        for (int p = 0; p < s->parts[i]; p++)
            if (space_extent(&axes[i], p) < 1)
                return err_set(err, ERR_USAGE,
                               "%s: its map has %lld %s, too few for %d parts; divide images among "
                               "fewer processes (parallel.space) or use larger ones",
                               node->name, (long long)axes[i].cuts[s->parts[i]],
                               i ? "columns" : "rows", s->parts[i]);
    return true;
}

bool space_window(struct space *s, const struct node *node, struct err *err)
{
    const struct shape *y = graph_shape(s->graph, node->output);
    const struct space_axis *in = s->values[node->inputs[0]].axes;
    struct space_axis out[2];
    struct space_want want;
    union attr attr = node->attr;
    value_id inputs[4] = { NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE };
    bool conv = node->op->kind == OP_CONV;
    for (int i = 0; i < 2; i++) {
        struct window w = window_of(node, i);
        int64_t pad[2] = { 0, 0 }, *to = conv ? attr.conv.pad : attr.pool.pad;
        divide_windows(&w, &in[i], s->parts[i], y->dim[2 + i], &out[i]);
        for (int p = s->parts[i] - 1; p >= 0; p--) {
            int64_t kept[2];
            read_windows(&w, &in[i], &out[i], s->parts[i], p, &want.part[i][p], kept);
            if (p == s->at[i])
                pad[0] = kept[0], pad[1] = kept[1];
        }
        to[i] = pad[0], to[2 + i] = pad[1];
    }
    if (!all_have_cells(s, node, out, err) ||
        !space_read(s, node, node->inputs[0], &want, &inputs[0], err))
        return false;
    for (int i = 1; i < node->n_inputs && i < 4; i++) {
        inputs[i] = rewrite_value(&s->r, node->inputs[i]);
        if (space_divided(s, node->inputs[i]) &&
            !space_read_as(s, node, node->inputs[i], out, &inputs[i], err))
            return false;
    }
    s->r.map[node->output] =
        graph_node(s->r.to, node->op->kind, node->name, inputs, node->n_inputs, &attr);
    return space_divide(s, node->output, out, err);
}

/* Output cell o is made from the input cells i with o = stride i - pad + k dilation; what the
 * widened part makes besides its own is cropped as padding is. */
bool space_transposed(struct space *s, const struct node *node, struct err *err)
{
    const struct conv_attr *a = &node->attr.conv;
    const struct shape *y = graph_shape(s->graph, node->output);
    const struct space_axis *in = s->values[node->inputs[0]].axes;
    struct space_axis out[2];
    struct space_want want;
    union attr attr = node->attr;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (a->kernel[i] - 1) * a->dilation[i] + 1, stride = a->stride[i];
        int64_t extent = in[i].cuts[s->parts[i]];
        if (reach < stride)
            return space_refuse(node,
                                "has gaps between its windows, and is not divided; cut the network "
                                "into stages (parallel.stages) instead",
                                err);
        for (int p = 0; p <= s->parts[i]; p++)
            out[i].cuts[p] = between(in[i].cuts[p] * stride, 0, y->dim[2 + i]);
        out[i].cuts[s->parts[i]] = y->dim[2 + i];
        for (int p = 0; p < s->parts[i]; p++) {
            int64_t begin = out[i].cuts[p] + a->pad[i], end = out[i].cuts[p + 1] + a->pad[i];
            struct space_range r = { -floor_div(reach - 1 - begin, stride),
                                     floor_div(end - 1, stride) + 1 };
            r = (struct space_range){ between(r.begin, 0, extent), between(r.end, 0, extent) };
            want.part[i][p] = r;
            int64_t more = (r.end - 1) * stride + reach - end;
            if (p == s->at[i]) {
                attr.conv.pad[i] = begin - r.begin * stride;
                attr.conv.pad[2 + i] = more > 0 ? more : 0;
                attr.conv.output_pad[i] = more < 0 ? -more : 0;
            }
        }
    }
    value_id inputs[3] = { NO_VALUE, rewrite_value(&s->r, node->inputs[1]),
                           node->n_inputs > 2 ? rewrite_value(&s->r, node->inputs[2]) : NO_VALUE };
    if (!all_have_cells(s, node, out, err) ||
        !space_read(s, node, node->inputs[0], &want, &inputs[0], err))
        return false;
    s->r.map[node->output] =
        graph_node(s->r.to, node->op->kind, node->name, inputs, node->n_inputs, &attr);
    return space_divide(s, node->output, out, err);
}

/* By a whole factor: of the nearest cell, or between two neighbours. */
bool space_upsample(struct space *s, const struct node *node, struct err *err)
{
    const struct upsample_attr *a = &node->attr.upsample;
    const struct shape *x = graph_shape(s->graph, node->inputs[0]);
    const struct shape *y = graph_shape(s->graph, node->output);
    const struct space_axis *in = s->values[node->inputs[0]].axes;
    bool blend = a->mode == UPSAMPLE_BILINEAR;
    union attr attr = node->attr, crop = { .pad = { .mode = PAD_ZERO } };
    struct space_axis out[2];
    struct space_want want;
    for (int i = 0; i < 2; i++) {
        int64_t factor = y->dim[2 + i] / x->dim[2 + i], extent = x->dim[2 + i];
        if (factor * extent != y->dim[2 + i] || a->align_corners ||
            (!a->size[i] && a->scale[i] != (double)factor))
            return space_refuse(node,
                                "is divided only by a whole factor, without align_corners; cut the "
                                "network into stages (parallel.stages) instead",
                                err);
        attr.upsample.size[i] = 0, attr.upsample.scale[i] = (double)factor;
        for (int p = 0; p <= s->parts[i]; p++)
            out[i].cuts[p] = in[i].cuts[p] * factor;
        for (int p = 0; p < s->parts[i]; p++)
            want.part[i][p] = (struct space_range){ between(in[i].cuts[p] - blend, 0, extent),
                                                    between(in[i].cuts[p + 1] + blend, 0, extent) };
        const struct space_range *own = &want.part[i][s->at[i]];
        crop.pad.pad[i] = (own->begin - in[i].cuts[s->at[i]]) * factor;
        crop.pad.pad[2 + i] = (in[i].cuts[s->at[i] + 1] - own->end) * factor;
    }
    value_id part = NO_VALUE;
    if (!space_read(s, node, node->inputs[0], &want, &part, err))
        return false;
    part = space_node(s, node, blend ? ".wide" : "", OP_UPSAMPLE, &part, 1, &attr);
    if (blend && part != NO_VALUE)
        part = space_node(s, node, "", OP_PAD, &part, 1, &crop);
    s->r.map[node->output] = part;
    return space_divide(s, node->output, out, err);
}

/* The first part is padded in front, the last one behind. */
bool space_pad(struct space *s, const struct node *node, struct err *err)
{
    const struct space_axis *in = s->values[node->inputs[0]].axes;
    const struct shape *y = graph_shape(s->graph, node->output);
    union attr attr = node->attr;
    struct space_axis out[2];
    for (int i = 0; i < 2; i++) {
        int last = s->parts[i] - 1, p = s->at[i];
        for (int k = 1; k <= last; k++)
            out[i].cuts[k] = in[i].cuts[k] + attr.pad.pad[i];
        out[i].cuts[0] = 0, out[i].cuts[last + 1] = y->dim[2 + i];
        if (attr.pad.mode == PAD_REFLECT && last > 0 &&
            (attr.pad.pad[i] >= space_extent(&in[i], 0) ||
             attr.pad.pad[2 + i] >= space_extent(&in[i], last)))
            return space_refuse(node,
                                "reflects more than a part has; divide images among fewer "
                                "processes (parallel.space) or use larger ones",
                                err);
        attr.pad.pad[i] = p == 0 ? attr.pad.pad[i] : 0;
        attr.pad.pad[2 + i] = p == last ? attr.pad.pad[2 + i] : 0;
    }
    if (!all_have_cells(s, node, out, err))
        return false;
    rewrite_node(&s->r, node, &attr);
    return space_divide(s, node->output, out, err);
}
