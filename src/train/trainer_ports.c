/* trainer_ports.c: the named inputs and outputs of the network (trainer.h). */
#include <string.h>
#include "train/trainer.h"

static int port_index(const struct graph_port *ports, int n, const char *name)
{
    int i = 0;
    while (i < n && strcmp(ports[i].name, name) != 0)
        i++;
    return i < n ? i : -1;
}

int trainer_output(const struct trainer *trainer, const struct graph *graph)
{
    return port_index(graph->outputs, graph->n_outputs, trainer->learning.objective->output);
}

bool trainer_check_ports(const struct trainer *trainer, struct err *err)
{
    const struct graph *graph = trainer->graph;
    const struct objective_feed *feed = trainer->learning.objective->feeds;
    while (feed->tensor &&
           (feed->optional || port_index(graph->inputs, graph->n_inputs, feed->port) >= 0))
        feed++;
    const char *missing = feed->tensor                         ? feed->port
                          : trainer_output(trainer, graph) < 0 ? trainer->learning.objective->output
                                                               : NULL;
    return !missing ||
           err_set(err, ERR_USAGE, "network.name: %s has no '%s', which objective %s needs",
                   trainer->config->network.name, missing, trainer->learning.objective->name);
}

int trainer_input(const struct graph *graph, const char *port)
{
    return port_index(graph->inputs, graph->n_inputs, port);
}
