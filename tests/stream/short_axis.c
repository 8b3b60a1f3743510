/* short_axis.c: the arithmetic of streaming with a mistake, to see that tests notice it: along one
 * edge of the network (the SHORT_EDGE-th that has a window), tiles get one cell less of what the
 * tiles before them computed, and a zero in its place. Linked instead of the library's axis.c. */
#define stream_axis_new right_axis_new
#include "../../src/net/stream/axis.c"
#undef stream_axis_new

bool stream_axis_new(const struct axis_spec *spec, struct stream_axis *out, struct err *err);

bool stream_axis_new(const struct axis_spec *spec, struct stream_axis *out, struct err *err)
{
    const char *text = getenv("SHORT_EDGE");
    long wanted = text ? strtol(text, NULL, 10) : -1, windows = 0;
    if (!right_axis_new(spec, out, err))
        return false;
    for (int e = 0; e < spec->n_edges; e++) {
        if (spec->edges[e].rule.reach < 2 || windows++ != wanted)
            continue;
        for (int64_t i = 1; i < out->tiles; i++) {
            struct axis_need *need = &out->needs[e * out->tiles + i];
            need->begin++, need->front++;
        }
    }
    return true;
}
