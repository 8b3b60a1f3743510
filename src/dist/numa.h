/* numa.h: the NUMA nodes of this machine and the ranks of a training on it: a node is some
 * processors and the memory next to them. With hwloc, every rank is bound to the processors and the
 * memory of one node, so that what it allocates is near and its threads stay there.
 *
 * The ranks of a machine are divided over its nodes in their order, so that neighbours in the grid
 * are on one node; several ranks of a node share its processors. With fewer ranks than nodes, a
 * rank has several whole nodes. Nothing is bound where there is one node or one rank, nor where
 * nodes do not divide evenly: a rank always has its share of all processors, so the number of
 * threads does not depend on binding. Memory is preferred, not forced: a full node takes from
 * others. Only processors that this process may use (affinity, control group) count. Not
 * collective. */
#ifndef DIST_NUMA_H
#define DIST_NUMA_H
#include "dist/ranks.h"

struct numa;

/* This machine, or the one described by `synthetic` ("numa:2 core:4 pu:2", as hwloc reads it; also
 * from the variable HWLOC_SYNTHETIC), which nothing can be bound to. *out is the caller's; free
 * with numa_free. */
bool numa_new(const char *synthetic, struct numa **out, struct err *err);
void numa_free(struct numa *numa); /* NULL-safe */

int numa_nodes(const struct numa *numa); /* with processors that may be used; at least 1 */
int numa_cores(const struct numa *numa);
int numa_processors(const struct numa *numa);

#define NUMA_WORDS 200

/* What rank `rank` of `ranks` on this machine gets. */
struct numa_place {
    bool bound;             /* else it has all processors, and `words` says why */
    int first_node, nodes;  /* numbers of numa_nodes */
    int processors;         /* of these nodes, shared by `sharing` ranks */
    int sharing;            /* ranks with this place */
    char words[NUMA_WORDS]; /* "node 1 (processors 4-7,12-15)" */
};
struct numa_place numa_place(const struct numa *numa, int ranks, int rank);
/* "2 NUMA nodes: ranks 0-1 on node 0, 2-3 on node 1", or why nothing is bound. */
void numa_tell(const struct numa *numa, int ranks, char *text, size_t size);

/* Binds this process, all of its threads, and what it allocates from now on. Fails if the system
 * does not allow it. */
bool numa_bind(const struct numa *numa, int ranks, int rank, struct err *err);

/* Binds a rank of a training to its place, unless the launcher already gave the ranks of this
 * machine different processors: then only its memory, if they are of one node. text: what was done
 * on this machine; "" if there is nothing to tell (one rank, one node). What the system does not
 * allow is told there, too: it is no error. */
void numa_settle(const struct ranks *ranks, char *text, size_t size);
#endif
