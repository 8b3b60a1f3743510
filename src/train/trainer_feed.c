/* trainer_feed.c: named tensors of a batch to the named inputs of a network (trainer.h). */
#include <string.h>
#include "net/model/model.h"
#include "train/mix.h"
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
    while (feed->tensor && port_index(graph->inputs, graph->n_inputs, feed->port) >= 0)
        feed++;
    const char *missing = feed->tensor                         ? feed->port
                          : trainer_output(trainer, graph) < 0 ? trainer->learning.objective->output
                                                               : NULL;
    return !missing ||
           err_set(err, ERR_USAGE, "network.name: %s has no '%s', which objective %s needs",
                   trainer->config->network.name, missing, trainer->learning.objective->name);
}

static float *input_of(struct plan *plan, const struct graph *graph, const char *port)
{
    return plan_input(plan, port_index(graph->inputs, graph->n_inputs, port));
}

static int64_t bytes_of(const struct batch_item *item)
{
    return shape_count(&item->shape) * (int64_t)sizeof(float);
}

void trainer_feed(const struct trainer *trainer, const struct batch *batch,
                  const struct graph *graph, int way, struct plan *plan)
{
    const struct objective_feed *feed = trainer->learning.objective->feeds;
    for (; feed->tensor; feed++) {
        const struct batch_item *item = batch_find(batch, feed->tensor);
        float *input = input_of(plan, graph, feed->port);
        if (way == 0)
            memcpy(input, item->data, (size_t)bytes_of(item));
        else
            model_lay(item->data, item->shape.dim[0] * item->shape.dim[1], item->shape.dim[2], way,
                      input);
    }
}

void trainer_mix(struct trainer *trainer, struct batch *batch)
{
    const struct train_config *config = trainer->config;
    const struct batch_item *image = batch_find(batch, "image");
    int64_t count = config->train.batch, n = shape_count(&image->shape);
    struct augment_key key = { .seed = (uint64_t)config->seed, .epoch = (uint64_t)trainer->epoch };
    mix_batch(batch, count, n / count, config->train.mixup, key, trainer->mix_shares,
              trainer->mix_others, trainer->mix_images);
    batch_put(batch,
              (struct batch_item){ "image", BATCH_FLOAT, image->shape, trainer->mix_images });
    batch_put(batch,
              (struct batch_item){ "share", BATCH_FLOAT, SHAPE(count), trainer->mix_shares });
    batch_put(batch,
              (struct batch_item){ "other_label", BATCH_INT32, SHAPE(count), trainer->mix_others });
}
