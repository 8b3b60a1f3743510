/* numa.c: see numa.h. The only file that knows hwloc. */
#include "dist/numa.h"

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#define LIST_TEXT 120

struct node {
    hwloc_bitmap_t processors; /* those that may be used */
    unsigned number;           /* the system's */
};

struct numa {
    hwloc_topology_t topology;
    hwloc_bitmap_t usable;
    struct node *nodes; /* in the order of the machine */
    int n;
};

/* --- the machine --- */

/* A node with processors that no earlier one has. A machine may have memory without processors, or
 * two kinds of memory next to the same ones: the first kind is the ordinary one. */
static bool add_node(struct numa *numa, hwloc_obj_t found)
{
    struct node *node = &numa->nodes[numa->n];
    node->number = found->os_index;
    node->processors = hwloc_bitmap_dup(found->cpuset);
    if (!node->processors)
        return false;
    numa->n++;
    hwloc_bitmap_and(node->processors, node->processors, numa->usable);
    for (int i = 0; i + 1 < numa->n; i++)
        hwloc_bitmap_andnot(node->processors, node->processors, numa->nodes[i].processors);
    if (hwloc_bitmap_iszero(node->processors)) {
        hwloc_bitmap_free(node->processors);
        numa->n--;
    }
    return true;
}

static bool look(struct numa *numa, struct err *err)
{
    hwloc_topology_t topology = numa->topology;
    int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    numa->usable = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    numa->nodes = calloc(n > 0 ? (size_t)n : 1, sizeof *numa->nodes);
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    bool ok = numa->usable && numa->nodes && own;
    if (ok && hwloc_topology_is_thissystem(topology) &&
        hwloc_get_cpubind(topology, own, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_and(numa->usable, numa->usable, own);
    hwloc_bitmap_free(own);
    for (int i = 0; ok && i < n; i++)
        ok = add_node(numa, hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i));
    return ok || err_memory(err, "the NUMA nodes");
}

bool numa_new(const char *synthetic, struct numa **out, struct err *err)
{
    struct numa *numa = calloc(1, sizeof *numa);
    *out = NULL;
    if (!numa || hwloc_topology_init(&numa->topology) != 0) {
        free(numa);
        return err_memory(err, "the NUMA nodes");
    }
    bool ok = true;
    if (synthetic && hwloc_topology_set_synthetic(numa->topology, synthetic) != 0)
        ok = err_set(err, ERR_USAGE,
                     "'%.100s' does not describe a machine; hwloc expects e.g. numa:2 core:4 pu:2",
                     synthetic);
    if (ok && hwloc_topology_load(numa->topology) != 0)
        ok = err_errno(err, "the processors of this machine", "find");
    if (ok && look(numa, err)) {
        *out = numa;
        return true;
    }
    numa_free(numa);
    return false;
}

void numa_free(struct numa *numa)
{
    if (!numa)
        return;
    for (int i = 0; i < numa->n; i++)
        hwloc_bitmap_free(numa->nodes[i].processors);
    hwloc_bitmap_free(numa->usable);
    hwloc_topology_destroy(numa->topology);
    free(numa->nodes);
    free(numa);
}

int numa_nodes(const struct numa *numa)
{
    return numa->n > 0 ? numa->n : 1;
}

int numa_processors(const struct numa *numa)
{
    int n = hwloc_bitmap_weight(numa->usable);
    return n > 0 ? n : 1;
}

int numa_cores(const struct numa *numa)
{
    int all = hwloc_get_nbobjs_by_type(numa->topology, HWLOC_OBJ_CORE), n = 0;
    for (int i = 0; i < all; i++)
        n += hwloc_bitmap_intersects(
            hwloc_get_obj_by_type(numa->topology, HWLOC_OBJ_CORE, (unsigned)i)->cpuset,
            numa->usable);
    return n > 0 ? n : numa_processors(numa);
}

/* --- places --- */

static int processors_of(const struct numa *numa, int from, int to)
{
    int n = 0;
    for (int i = from; i < to; i++)
        n += hwloc_bitmap_weight(numa->nodes[i].processors);
    return n;
}

/* The node in which the middle of a rank's share of all processors lies: equal nodes get equally
 * many ranks, a smaller one fewer. */
static int node_of(const struct numa *numa, int ranks, int rank)
{
    int64_t middle = (2LL * rank + 1) * processors_of(numa, 0, numa->n), behind = 0;
    for (int i = 0; i < numa->n; i++) {
        behind += 2LL * ranks * hwloc_bitmap_weight(numa->nodes[i].processors);
        if (middle < behind)
            return i;
    }
    return numa->n - 1;
}

/* Which nodes a rank has, and with how many others. */
static struct numa_place nodes_of(const struct numa *numa, int ranks, int rank)
{
    struct numa_place place = { .sharing = 1 };
    if (ranks < numa->n) {
        place.first_node = (int)((int64_t)rank * numa->n / ranks);
        place.nodes = (int)((rank + 1LL) * numa->n / ranks) - place.first_node;
    } else {
        place.first_node = node_of(numa, ranks, rank);
        place.nodes = 1;
        for (int r = 0; r < ranks; r++)
            place.sharing += r != rank && node_of(numa, ranks, r) == place.first_node;
    }
    place.processors = processors_of(numa, place.first_node, place.first_node + place.nodes);
    return place;
}

/* Whether every rank keeps its share of all processors. */
static bool is_even(const struct numa *numa, int ranks)
{
    int share = processors_of(numa, 0, numa->n) / ranks;
    for (int r = 0; r < ranks; r++) {
        struct numa_place place = nodes_of(numa, ranks, r);
        if ((int64_t)place.sharing * share > place.processors)
            return false;
    }
    return true;
}

/* The processors and the nodes of a place; NULL: no memory. */
static hwloc_bitmap_t processors_in(const struct numa *numa, const struct numa_place *place)
{
    hwloc_bitmap_t all = hwloc_bitmap_alloc();
    for (int i = 0; all && i < place->nodes; i++)
        hwloc_bitmap_or(all, all, numa->nodes[place->first_node + i].processors);
    return all;
}

static void put_words(const struct numa *numa, struct numa_place *place)
{
    hwloc_bitmap_t all = processors_in(numa, place);
    char list[LIST_TEXT] = "";
    if (all && hwloc_bitmap_list_snprintf(list, sizeof list, all) >= (int)sizeof list)
        snprintf(list, sizeof list, "%d of them", place->processors);
    hwloc_bitmap_free(all);
    unsigned first = numa->nodes[place->first_node].number;
    if (place->nodes == 1)
        snprintf(place->words, sizeof place->words, "node %u (processors %s)", first, list);
    else
        snprintf(place->words, sizeof place->words, "nodes %u-%u (processors %s)", first,
                 numa->nodes[place->first_node + place->nodes - 1].number, list);
}

struct numa_place numa_place(const struct numa *numa, int ranks, int rank)
{
    struct numa_place all = { .nodes = numa_nodes(numa),
                              .processors = numa_processors(numa),
                              .sharing = ranks };
    const char *why = ranks == 1             ? "not bound: one rank has the whole machine"
                      : numa->n < 2          ? "not bound: one NUMA node"
                      : is_even(numa, ranks) ? NULL
                                             : "not bound: the NUMA nodes do not divide evenly";
    if (why) {
        snprintf(all.words, sizeof all.words, "%s", why);
        return all;
    }
    struct numa_place place = nodes_of(numa, ranks, rank);
    place.bound = true;
    put_words(numa, &place);
    return place;
}

void numa_tell(const struct numa *numa, int ranks, char *text, size_t size)
{
    struct numa_place place = numa_place(numa, ranks, 0);
    size_t used = (size_t)snprintf(text, size, "%d NUMA node%s", numa_nodes(numa),
                                   numa_nodes(numa) == 1 ? "" : "s");
    if (!place.bound && used < size)
        snprintf(text + used, size - used, "; %d rank%s %s", ranks, ranks == 1 ? "" : "s",
                 place.words);
    for (int r = 0; place.bound && r < ranks && used < size; r += place.sharing) {
        place = numa_place(numa, ranks, r);
        char who[40], on[40];
        snprintf(who, sizeof who, place.sharing == 1 ? "rank %d" : "ranks %d-%d", r,
                 r + place.sharing - 1);
        unsigned first = numa->nodes[place.first_node].number;
        snprintf(on, sizeof on, place.nodes == 1 ? "node %u" : "nodes %u-%u", first,
                 numa->nodes[place.first_node + place.nodes - 1].number);
        used += (size_t)snprintf(text + used, size - used, "%s%s on %s", r ? ", " : ": ", who, on);
    }
}

/* --- binding --- */

/* Prefers the memory of these nodes. */
static bool bind_memory(const struct numa *numa, const struct numa_place *place)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    for (int i = 0; nodes && i < place->nodes; i++)
        hwloc_bitmap_set(nodes, numa->nodes[place->first_node + i].number);
    bool ok = nodes && hwloc_set_membind(numa->topology, nodes, HWLOC_MEMBIND_BIND,
                                         HWLOC_MEMBIND_BYNODESET) == 0;
    int code = errno;
    hwloc_bitmap_free(nodes);
    errno = code;
    return ok;
}

bool numa_bind(const struct numa *numa, int ranks, int rank, struct err *err)
{
    struct numa_place place = numa_place(numa, ranks, rank);
    if (!place.bound)
        return true;
    hwloc_bitmap_t processors = processors_in(numa, &place);
    if (!processors)
        return err_memory(err, "the NUMA nodes");
    bool ok = hwloc_set_cpubind(numa->topology, processors, HWLOC_CPUBIND_PROCESS) == 0 ||
              err_set(err, ERR_IO, "the processors could not be bound: %s", strerror(errno));
    hwloc_bitmap_free(processors);
    return ok && (bind_memory(numa, &place) ||
                  err_set(err, ERR_IO, "the memory could not be bound: %s", strerror(errno)));
}

/* The launcher chose the processors: memory next to them, if they are all of one node. */
static void follow_launcher(const struct numa *numa, char *text, size_t size)
{
    if (numa->n != 1 || hwloc_get_nbobjs_by_type(numa->topology, HWLOC_OBJ_NUMANODE) < 2)
        return;
    struct numa_place place = { .nodes = 1 };
    bool ok = bind_memory(numa, &place);
    snprintf(text, size, "NUMA: processors as the launcher bound them, memory of node %u%s",
             numa->nodes[0].number, ok ? "" : " (not allowed here)");
}

void numa_settle(const struct ranks *ranks, char *text, size_t size)
{
    struct numa *numa = NULL;
    struct err why = { 0 };
    text[0] = 0;
    if (ranks->size == 1 || !numa_new(NULL, &numa, NULL))
        return;
    if (ranks->placed) {
        follow_launcher(numa, text, size);
    } else if (numa_nodes(numa) > 1) {
        numa_tell(numa, ranks->local_size, text, size);
        size_t used = strlen(text);
        if (!numa_bind(numa, ranks->local_size, ranks->local_rank, &why))
            snprintf(text + used, size - used, " (%s)", why.text);
    }
    numa_free(numa);
}
