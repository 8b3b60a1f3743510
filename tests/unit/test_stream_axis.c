/* test_stream_axis.c: along an axis, tiles compute every cell of every map once, whatever the
 * network, and take over just what they need. By counting cells, on drawn networks: chains,
 * residual sums, joined branches, strides, dilation, windows that hang over the border, upsampling.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/stream/axis.h"

#define MOST_MAPS 24
#define MOST_EDGES 48

struct network {
    int64_t extents[MOST_MAPS];
    int64_t above[MOST_MAPS], below[MOST_MAPS]; /* pixels for a cell */
    int n_maps, n_edges;
    struct axis_edge edges[MOST_EDGES];
};

static int64_t draw(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(rng, (uint64_t)(high - low + 1));
}

static void add_edge(struct network *n, int from, struct axis_rule rule)
{
    n->edges[n->n_edges++] = (struct axis_edge){ from, n->n_maps, rule };
}

static void add_map(struct network *n, int64_t extent, int64_t above, int64_t below)
{
    n->extents[n->n_maps] = extent;
    n->above[n->n_maps] = above, n->below[n->n_maps++] = below;
}

/* A window of a kernel, or one that is padded or cropped on purpose. False: it does not fit. */
static bool add_window(struct network *n, int from, struct rng *rng)
{
    int64_t kernel = draw(rng, 1, 7), dilation = draw(rng, 0, 3) ? 1 : draw(rng, 2, 4);
    int64_t stride = draw(rng, 0, 2) ? 1 : draw(rng, 2, 3);
    int64_t reach = (kernel - 1) * dilation + 1, pad = draw(rng, 0, reach / 2);
    int64_t back = draw(rng, 0, 4) ? pad : draw(rng, 0, reach / 2);
    int64_t room = n->extents[from] + pad + back - reach;
    if (room < 0 || n->above[from] * stride > 32)
        return false;
    int64_t extent = room / stride + 1;
    bool hangs = draw(rng, 0, 3) == 0 && room % stride; /* ceil_mode */
    add_edge(n, from, (struct axis_rule){ .reach = reach, .stride = stride, .pad = pad });
    add_map(n, extent + (hangs && extent * stride < n->extents[from] + pad),
            n->above[from] * stride, n->below[from]);
    return true;
}

static bool add_upsampling(struct network *n, int from, struct rng *rng)
{
    int64_t up = draw(rng, 2, 3);
    bool blend = up == 2 && draw(rng, 0, 1);
    if (n->below[from] > 1)
        return false;
    add_edge(n, from, (struct axis_rule){ .up = up, .blend = blend });
    bool whole = n->above[from] % up == 0;
    add_map(n, n->extents[from] * up, whole ? n->above[from] / up : n->above[from], whole ? 1 : up);
    return true;
}

/* A sum of all maps that are like this one, or of some. */
static bool add_sum(struct network *n, int like, struct rng *rng)
{
    int others = 0;
    const struct axis_rule same = { .reach = 1, .stride = 1 };
    for (int m = 1; m < n->n_maps; m++)
        if (m != like && n->extents[m] == n->extents[like] && n->above[m] == n->above[like] &&
            n->below[m] == n->below[like] && draw(rng, 0, 1)) {
            add_edge(n, m, same);
            others++;
        }
    if (!others)
        return false;
    add_edge(n, like, same);
    add_map(n, n->extents[like], n->above[like], n->below[like]);
    return true;
}

static struct network draw_network(struct rng *rng)
{
    struct network n = { 0 };
    int maps = (int)draw(rng, 3, 12);
    add_map(&n, draw(rng, 40, 400), 1, 1);
    for (int tries = 0; tries < 100 && n.n_maps < maps; tries++) {
        int from = draw(rng, 0, 2) ? n.n_maps - 1 : (int)draw(rng, 0, n.n_maps - 1);
        int64_t what = draw(rng, 0, 9);
        if (what == 0)
            add_upsampling(&n, from, rng);
        else if (what < 4 && from > 0)
            add_sum(&n, from, rng);
        else
            add_window(&n, from, rng);
    }
    return n;
}

/* The cells of a map that a cell behind an edge needs, as the rule says it. */
static void cells_of(const struct axis_rule *rule, int64_t out, int64_t *first, int64_t *last)
{
    if (!rule->up) {
        *first = out * rule->stride - rule->pad, *last = *first + rule->reach - 1;
        return;
    }
    if (!rule->blend) {
        *first = *last = out / rule->up;
        return;
    }
    double at = ((double)out + 0.5) / (double)rule->up - 0.5;
    *first = at < 0 ? -1 : (int64_t)at, *last = *first + 1;
}

static void check_tile(const struct network *n, const struct stream_axis *a, int e, int64_t tile)
{
    const struct axis_edge *edge = &n->edges[e];
    const struct axis_need *need = stream_axis_need(a, e, tile);
    int64_t begin = INT64_MAX, end = 0, front = 0, back = 0, extent = n->extents[edge->from];
    for (int64_t out = stream_axis_prefix(a, edge->to, tile);
         out < stream_axis_prefix(a, edge->to, tile + 1); out++) {
        int64_t first, last;
        cells_of(&edge->rule, out, &first, &last);
        begin = first < begin ? first : begin, end = last + 1 > end ? last + 1 : end;
    }
    front = begin < 0 ? -begin : 0, back = end > extent ? end - extent : 0;
    int64_t between = edge->rule.stride - edge->rule.reach; /* of windows: may be taken too */
    assert_int_equal(need->begin, begin + front);
    assert_in_range(need->end, end - back, end - back + (between > 0 ? between : 0));
    assert_int_equal(need->front, front);
    assert_int_equal(need->back, back);
    /* all of it is there: from this tile or those before it, of which the strip is left */
    int64_t strip = stream_axis_strip(a, n->edges, e, tile);
    int64_t next = stream_axis_strip(a, n->edges, e, tile + 1);
    assert_true(need->begin >= strip);
    assert_true(next >= strip);
    assert_true(next <= stream_axis_prefix(a, edge->from, tile + 1));
    if (tile + 1 < a->tiles)
        assert_true(need->end <= stream_axis_prefix(a, edge->from, tile + 1));
}

static void check_axis(const struct network *n, const struct stream_axis *a)
{
    for (int m = 0; m < n->n_maps; m++)
        for (int64_t i = 0; i < a->tiles; i++)
            assert_true(stream_axis_prefix(a, m, i) < stream_axis_prefix(a, m, i + 1));
    for (int e = 0; e < n->n_edges; e++)
        for (int64_t i = 0; i < a->tiles; i++)
            check_tile(n, a, e, i);
    for (int64_t i = 0; i < a->tiles; i++) {
        int64_t other = a->examples[a->kinds[i]];
        for (int m = 0; m < n->n_maps; m++)
            assert_int_equal(stream_axis_prefix(a, m, i + 1) - stream_axis_prefix(a, m, i),
                             stream_axis_prefix(a, m, other + 1) - stream_axis_prefix(a, m, other));
    }
}

static bool make(const struct network *n, int64_t tile, int64_t begin, int64_t end,
                 struct stream_axis *out)
{
    struct axis_spec spec = { .n_maps = n->n_maps,
                              .extents = n->extents,
                              .edges = n->edges,
                              .n_edges = n->n_edges,
                              .tile = tile,
                              .begin = begin,
                              .end = end };
    struct err err = { 0 };
    return stream_axis_new(&spec, out, &err);
}

static void every_cell_is_computed_once(void **state)
{
    (void)state;
    struct rng rng = rng_new(11, 0, 0);
    int many = 0;
    for (int k = 0; k < 3000; k++) {
        struct network n = draw_network(&rng);
        struct stream_axis a;
        assert_true(make(&n, draw(&rng, 1, 130), 0, n.extents[0], &a));
        for (int m = 0; m < n.n_maps; m++) {
            assert_int_equal(stream_axis_prefix(&a, m, 0), 0);
            assert_int_equal(stream_axis_prefix(&a, m, a.tiles), n.extents[m]);
        }
        check_axis(&n, &a);
        many += a.tiles > 3;
        stream_axis_free(&a);
    }
    assert_true(many > 500);
}

/* Bands of the image meet in every map, and each finds what it needs of the next one in that one's
 * first tile. */
static void bands_meet(void **state)
{
    (void)state;
    struct rng rng = rng_new(12, 0, 0);
    int many = 0;
    for (int k = 0; k < 3000; k++) {
        struct network n = draw_network(&rng);
        int64_t step = stream_axis_step(n.edges, n.n_edges, n.n_maps);
        int64_t tile = draw(&rng, 1, 60), middle = draw(&rng, 1, n.extents[0] / step) * step;
        struct stream_axis above, below;
        if (middle >= n.extents[0] || !make(&n, tile, 0, middle, &above))
            continue;
        if (!make(&n, tile, middle, n.extents[0], &below)) {
            stream_axis_free(&above);
            continue;
        }
        check_axis(&n, &above);
        check_axis(&n, &below);
        for (int m = 0; m < n.n_maps; m++) {
            assert_int_equal(stream_axis_prefix(&above, m, above.tiles),
                             stream_axis_prefix(&below, m, 0));
            assert_int_equal(stream_axis_prefix(&below, m, below.tiles), n.extents[m]);
        }
        for (int e = 0; e < n.n_edges; e++)
            if (n.edges[e].from > 0)
                assert_true(stream_axis_need(&above, e, above.tiles - 1)->end <=
                            stream_axis_prefix(&below, n.edges[e].from, 1));
        many++;
        stream_axis_free(&above), stream_axis_free(&below);
    }
    assert_true(many > 500);
}

/* In the middle all tiles are alike: there are few graphs however large the image. */
static void kinds_are_few(void **state)
{
    (void)state;
    struct network n = { 0 };
    const struct axis_rule conv = { 3, 1, 1, 0, false }, down = { 3, 2, 1, 0, false };
    add_map(&n, 100001, 1, 1);
    for (int k = 0; k < 10; k++) {
        add_edge(&n, k, k % 2 ? conv : down);
        int64_t stride = k % 2 ? 1 : 2;
        add_map(&n, (n.extents[k] - 1) / stride + 1, n.above[k] * stride, 1);
    }
    struct stream_axis a;
    assert_true(make(&n, 512, 0, n.extents[0], &a));
    assert_true(a.tiles > 180);
    assert_true(a.n_kinds <= 4);
    stream_axis_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_computed_once),
        cmocka_unit_test(bands_meet),
        cmocka_unit_test(kinds_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
