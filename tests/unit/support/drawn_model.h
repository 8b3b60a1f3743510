/* drawn_model.h: models with drawn weights, for tests. */
#ifndef TESTS_UNIT_SUPPORT_DRAWN_MODEL_H
#define TESTS_UNIT_SUPPORT_DRAWN_MODEL_H
#include "net/graph/graph.h"
#include "net/model/model_config.h"

/* Writes weights and config.json of a network of the zoo (classes "normal" and "tumor", square
 * input, 0.5 um/px) to a folder of its own in SCRATCH, whose path is the caller's. change (may be
 * NULL) sees both before they are written. */
char *drawn_model(const char *folder, const char *network, int64_t window_px, uint64_t seed,
                  void (*change)(struct graph *graph, struct model_config *config));
#endif
