/* collective.h: what ops share that talk to peers (net/plan/peers.h), for a network of which every
 * process has a part: halo (collective.c), all_reduce, all_gather and reduce_scatter. Without peers
 * they are what remains: a border of zeros, and nothing. */
#ifndef NET_OPS_COLLECTIVE_H
#define NET_OPS_COLLECTIVE_H
#include "net/ops/ops.h"
#include "net/plan/step.h"

extern const char *const peer_group_names[]; /* in the order of the groups; ends with NULL */

#define GROUP_FIELD                                                                                \
    {                                                                                              \
        .name = "group", .type = ATTR_CHOICE, .offset = offsetof(ATTR_STRUCT, group), .count = 1,  \
        .min = 0, .max = PEER_GROUPS - 1, .choices = peer_group_names                              \
    }

/* NULL: alone. */
const struct plan_peers *peers_of(const struct plan_node *pn, enum peer_group group);

/* A tensor in memory around one axis: [outer, extent, inner]. */
struct around {
    int64_t outer, extent, inner;
};
struct around around_axis(const struct tape *tape, const struct shape *shape, int axis,
                          enum layout layout);
#endif
