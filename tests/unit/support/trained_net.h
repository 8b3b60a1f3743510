/* trained_net.h: a network of the zoo, trained for two steps on drawn numbers: to compare the bits
 * that plans with different options leave. */
#ifndef TESTS_UNIT_SUPPORT_TRAINED_NET_H
#define TESTS_UNIT_SUPPORT_TRAINED_NET_H
#include "net/plan/plan.h"

/* What is left of the training steps. */
struct trained_net {
    float *gradients, *buffers; /* of all parameters; running statistics */
    int64_t n_gradients, n_buffers;
    float outputs[64]; /* the first ones */
    struct plan_memory memory;
};

/* side 0: the network's own. The mode is PLAN_TRAIN. Free with trained_net_free. */
struct trained_net trained_net(const char *network, int64_t side, int64_t batch,
                               struct plan_options options);
void trained_net_free(struct trained_net *t);
/* All bits. */
void assert_trained_same(const struct trained_net *a, const struct trained_net *b);
#endif
