/* small_trainer.c: see small_trainer.h. */
#include "tests/fuzz/small_trainer.h"

#include <stdlib.h>
#include "train/objectives.h"

static struct graph *small_graph(void)
{
    struct graph *graph = graph_new("small");
    if (!graph)
        abort();
    value_id x = graph_input(graph, "input", SHAPE(2, 3, 4, 4));
    x = graph_conv(graph, x, "conv1", 2, true, conv_square(1, 1, 0));
    graph_output(graph, "y", graph_batch_norm(graph, x, "bn1"));
    if (!graph_ok(graph, NULL) || !graph_allocate(graph, NULL))
        abort();
    return graph;
}

struct trainer *small_trainer(const char *folder)
{
    static struct trainer trainer;
    static struct train_config config;
    static struct train_request request;
    static struct ranks ranks;
    static const struct ctx ctx = { 0 };
    static const char *const settings[] = { "data.train=[a.h5]", "classes=[normal, tumor]",
                                            "train.batch=2" };
    if (!trainer.graph) {
        struct optimizer_options options = { .kind = OPTIMIZER_SGD, .momentum = 0.9, .threads = 1 };
        ranks = ranks_one();
        trainer.data_ranks = trainer.weight_ranks = trainer.sample_ranks = &ranks;
        trainer.graph = trainer.learnt = small_graph();
        if (!config_read(NULL, settings, 3, &config, NULL) ||
            !objective_settle(&config, NULL, NULL) ||
            !optimizer_new(trainer.graph, &options, &trainer.optimizer, NULL))
            abort();
        trainer.request = &request;
        trainer.config = &config;
        trainer.ctx = &ctx;
        trainer.threads = 1;
        trainer.learning = (struct learning){ .objective = objective_of(&config), .outputs = 2 };
        trainer.seen.outputs = 2;
        trainer.steps_per_epoch = 10;
        schedule_begin(&trainer.judged);
    }
    request = (struct train_request){ .config = &config, .folder = folder, .ranks = &ranks };
    return &trainer;
}
