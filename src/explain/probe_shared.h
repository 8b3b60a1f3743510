/* probe_shared.h: what several probes of one model have in common: its weights, folded and in the
 * layouts of the kernels. Internal to the probe; probe.h has struct probe_shared for callers. */
#ifndef EXPLAIN_PROBE_SHARED_H
#define EXPLAIN_PROBE_SHARED_H
#include "explain/probe.h"
#include "net/plan/shared_weights.h"

struct plan_weights *probe_shared_weights(struct probe_shared *shared);
/* The graph prepared for a probe, at the shapes of `resized`: for inference or, with batch norm
 * folded only, for gradients. keep: names of values that stay. The floats are those of the first
 * call with these arguments. *out is the caller's. */
bool probe_shared_graph(struct probe_shared *shared, const struct graph *resized, bool inference,
                        const char *const *keep, int n_keep, struct graph **out, struct err *err);
#endif
