/* peers.h: ranks as the peers of a plan (net/plan/peers.h). */
#ifndef TRAIN_PEERS_H
#define TRAIN_PEERS_H
#include "dist/rank_grid.h"
#include "net/plan/peers.h"

/* The ranks of a group, which must outlive it. What fails on one rank alone leaves the others
 * waiting: see ranks.h. */
struct plan_peers peers_of_ranks(struct ranks *ranks);
/* For plan_options.peers: every axis of a grid is the group of peers of the same name. */
void peers_of_grid(struct rank_grid *grid, struct plan_peers out[GRID_AXES]);
#endif
