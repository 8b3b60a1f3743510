/* collective.h: what ops that talk to peers share. */
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
#endif
