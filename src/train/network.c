/* network.c: see network.h. */
#include "train/network.h"

#include "net/graph/transform.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"

bool network_start(const struct train_config *config, struct graph *graph, struct console *console,
                   struct err *err)
{
    if (!graph_initialize(graph, (uint64_t)config->seed, err))
        return false;
    if (!config->network.weights[0])
        return true;
    struct weights_options options = { .fresh = (const char *const *)config->network.fresh.items,
                                       .n_fresh = config->network.fresh.n,
                                       .any_unexpected = true };
    struct weights_report report = { 0 };
    bool ok = weights_read(graph, config->network.weights, &options, &report, err);
    if (ok)
        console_note(console, "%s: %zu parameters loaded, %zu start from scratch",
                     config->network.weights, report.n_loaded, report.fresh.n);
    weights_report_free(&report);
    return ok;
}

static bool name_a_size(const struct train_config *config, const struct zoo_options *options,
                        struct err *err)
{
    int64_t px = zoo_larger_px(config->network.name, options);
    char setting[80] = "network.input_px";
    if (px > 0 && err)
        err->kind = ERR_USAGE; /* the network is right, the setting is not */
    if (px > 0)
        snprintf(setting, sizeof setting, "network.input_px: %lld is too small (%lld fits)",
                 (long long)config->network.input_px, (long long)px);
    return err_prefix(err, setting);
}

bool network_build(const struct train_config *config, int64_t outputs, const char *what,
                   struct graph **out, struct err *err)
{
    struct graph *graph = NULL;
    struct zoo_options options = { .batch = config->train.batch,
                                   .height = config->network.input_px,
                                   .width = config->network.input_px,
                                   .classes = outputs };
    const struct zoo_network *network = zoo_find(config->network.name, err);
    if (!network)
        return err_prefix(err, "network.name");
    if (!zoo_build(config->network.name, &options, &graph, err))
        return name_a_size(config, &options, err);
    const struct shape *logits = graph_shape(graph, graph->outputs[0].value);
    bool ok = network->input == ZOO_IMAGE && logits->rank == 2 && logits->dim[1] == outputs;
    if (!ok)
        err_set(err, ERR_USAGE, "network.name: %s is not %s", config->network.name, what);
    if (ok && config->network.padding != PADDING_ZERO)
        ok = transform_padding(graph, (enum padding)config->network.padding, out, err);
    else if (ok)
        *out = graph, graph = NULL;
    graph_free(graph);
    return ok;
}
