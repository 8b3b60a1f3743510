/* graph_names.h: finds names in a graph without reading all of them. Internal to the graph: every
 * output, value and alias enters the index when it is added, and none is ever renamed or removed.
 */
#ifndef NET_GRAPH_GRAPH_NAMES_H
#define NET_GRAPH_GRAPH_NAMES_H
#include "net/graph/graph.h"

/* Entry `index` of graph->outputs, ->values or ->aliases, which is there already. False if there
 * is no memory. */
bool graph_names_add(struct graph *graph, enum graph_name_kind kind, int32_t index);
/* The first entry of this kind and name; -1 if there is none. */
int32_t graph_names_find(const struct graph *graph, enum graph_name_kind kind, const char *name);
/* Whether a value of this name is (node) or is not (!node) made by a node. */
bool graph_names_has(const struct graph *graph, bool node, const char *name);
/* One more name of a value in a list of them, not in the index. */
bool graph_add_port(struct graph_port **ports, int *count, const char *name, value_id value);
void graph_names_free(struct graph *graph);
#endif
