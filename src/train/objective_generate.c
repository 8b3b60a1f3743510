/* objective_generate.c: images from noise (objective.h): a network learns to remove noise from
 * patches, knowing their class and centre; diffusion/process.h says what is mixed and what is
 * learnt. What is drawn for a sample (time, noise, whether its condition is withheld) depends on
 * seed, epoch, sample and copy alone; in an evaluation on seed and sample, so that losses of epochs
 * compare. A prediction is the sample's loss, its truth the time that was drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "diffusion/colour.h"
#include "diffusion/denoiser.h"
#include "diffusion/latent.h"
#include "net/zoo/zoo.h"
#include "train/centres.h"
#include "train/loss.h"
#include "train/network.h"
#include "train/objective.h"

struct generate {
    struct centres centres; /* none: not conditioned on */
    struct latent latent;   /* that makes maps of images; no plan: images are learnt */
    char *latent_network;
    struct denoiser ports; /* of the network; no plan */
    float *noisy, *wanted; /* [batch, floats] */
    float *learnt;         /* [batch, floats]: images in the colours that are learnt */
    float *times;          /* [batch, features] */
    float *conditions;     /* [batch, conditions]; NULL: none */
    float *drawn;          /* [batch]: times as the process counts them */
};

static bool generate_settle(struct train_config *config, struct err *err)
{
    const char *key = config->train.smoothing > 0               ? "train.smoothing"
                      : config->train.mixup > 0                 ? "train.mixup"
                      : config->train.tta                       ? "train.tta"
                      : config->data.hard_negatives[0]          ? "data.hard_negatives (--mine)"
                      : config->data.balance == BALANCE_WEIGHTS ? "data.balance: weights"
                                                                : NULL;
    if (key)
        return err_set(err, ERR_USAGE,
                       "%s: is for classifiers, but objective generate makes images; omit it", key);
    if (config->generate.colour != COLOUR_RGB && config->generate.latent[0])
        return err_set(err, ERR_USAGE,
                       "generate.colour: is for pixels, but generate.latent learns maps; omit it");
    if (!network_is_undivided(config, "generate", err))
        return false;
    if (config->generate.condition == GENERATE_NONE)
        config->truth = TRUTH_NONE;
    network_usual_pixels(config); /* between -1 and 1, as the processes expect them */
    return true;
}

static int64_t class_features(const struct train_config *config)
{
    return config->generate.condition == GENERATE_NONE ? 0 : (int64_t)config->classes.n;
}

/* The encoder in a folder whose config.json was read. */
static bool open_encoder(const struct learning *learning, const struct model_config *card,
                         const char *folder, struct generate *own, struct err *err)
{
    const struct train_config *config = learning->config;
    if (card->objective != OBJECTIVE_ENCODE || !card->network)
        return err_set(err, ERR_USAGE,
                       "%s: is no autoencoder; train one with 'microtome synthesize train' and "
                       "objective: encode",
                       folder);
    if (memcmp(card->mean, config->data.mean, sizeof card->mean) != 0 ||
        memcmp(card->std, config->data.std, sizeof card->std) != 0)
        return err_set(err, ERR_USAGE, "%s: was trained with another data.mean or data.std",
                       folder);
    char *weights = text_format("%s/model.safetensors", folder);
    own->latent_network = strdup(card->network);
    struct latent_request request = { .network = card->network,
                                      .weights = weights,
                                      .part = ZOO_ENCODER,
                                      .batch = config_micro_batch(config),
                                      .side_px = learning->crop_px,
                                      .threads = learning->threads };
    bool ok = (weights && own->latent_network) || err_memory(err, "the autoencoder");
    ok = ok && latent_open(&request, &own->latent, err);
    free(weights);
    return ok;
}

/* generate.latent: the encoder of a model of objective encode. */
static bool open_latent(const struct learning *learning, struct generate *own, struct err *err)
{
    const char *folder = learning->config->generate.latent;
    struct model_config card;
    if (!folder[0])
        return true;
    char *path = text_format("%s/config.json", folder);
    model_config_init(&card);
    bool ok = (path || err_memory(err, "the autoencoder")) && model_config_read(path, &card, err) &&
              open_encoder(learning, &card, folder, own, err);
    model_config_free(&card);
    free(path);
    return ok || err_prefix(err, "generate.latent");
}

/* The decoder travels with the model. */
static bool generate_accompany(const struct learning *learning, const char *folder, struct err *err)
{
    const struct generate *own = learning->own;
    if (!own->latent_network)
        return true;
    char *from = text_format("%s/model.safetensors", learning->config->generate.latent),
         *to = text_format("%s/" MODEL_LATENT_FILE, folder);
    bool ok = (from && to) || err_memory(err, "the autoencoder");
    ok = ok && file_copy(from, to, err);
    free(from);
    free(to);
    return ok;
}

static bool generate_inputs(struct learning *learning, struct err *err)
{
    struct generate *own = learning->own = calloc(1, sizeof *own);
    if (!own)
        return err_memory(err, "the objective");
    return centres_find(learning->dataset, learning->config->generate.centre, &own->centres, err) &&
           open_latent(learning, own, err);
}

static bool allocate(struct generate *own, struct err *err)
{
    const struct denoiser *ports = &own->ports;
    size_t batch = (size_t)ports->batch, images = batch * (size_t)ports->floats;
    own->noisy = calloc(images, sizeof *own->noisy);
    own->wanted = calloc(images, sizeof *own->wanted);
    own->learnt = calloc(images, sizeof *own->learnt);
    own->times = calloc(batch * (size_t)ports->features, sizeof *own->times);
    own->conditions = calloc(batch * (size_t)(ports->conditions + 1), sizeof *own->conditions);
    own->drawn = calloc(batch, sizeof *own->drawn);
    return (own->noisy && own->wanted && own->learnt && own->times && own->conditions &&
            own->drawn) ||
           err_memory(err, "noisy patches");
}

static bool generate_build(struct learning *learning, struct graph **out, struct err *err)
{
    struct generate *own = learning->own;
    int64_t conditions = class_features(learning->config) + own->centres.n;
    learning->outputs = 1; /* the loss of a sample */
    bool maps = own->latent.plan != NULL;
    return network_build_denoiser(learning->config, maps ? own->latent.channels : 3,
                                  maps ? own->latent.side : learning->crop_px, conditions, out,
                                  err) &&
           denoiser_ports(*out, &own->ports, err) && allocate(own, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

/* --- what the network is fed with --- */

static void set_condition(const struct learning *learning, struct rng *rng, int32_t label,
                          int64_t sample, float *out)
{
    const struct generate *own = learning->own;
    int64_t classes = class_features(learning->config);
    memset(out, 0, (size_t)own->ports.conditions * sizeof *out);
    if (rng_uniform(rng) < learning->config->generate.drop || sample < 0)
        return;
    if (classes > 0 && label >= 0)
        out[label] = 1;
    if (own->centres.n > 0)
        out[classes + centres_of(&own->centres, learning->dataset, sample)] = 1;
}

static void make_noisy(const struct learning *learning, struct rng rng, int64_t row,
                       const float *image)
{
    struct generate *own = learning->own;
    const struct denoiser *ports = &own->ports;
    enum process process = (enum process)learning->config->generate.process;
    double time = process_draw(process, &rng);
    struct process_at at = process_at(process, time);
    float *noise = own->wanted + row * ports->floats; /* first; then what is wanted */
    for (int64_t i = 0; i < ports->floats; i++)
        noise[i] = (float)rng_normal(&rng);
    process_mix(&at, ports->floats, image, noise, own->noisy + row * ports->floats, noise);
    zoo_time_embedding(at.code, ports->features, own->times + row * ports->features);
    own->drawn[row] = (float)time;
}

static bool generate_prepare(struct learning *learning, struct batch *batch, bool train,
                             uint64_t epoch, struct err *err)
{
    struct generate *own = learning->own;
    const struct denoiser *ports = &own->ports;
    const float *images = batch_floats(batch, "image");
    const int32_t *labels = batch_int32(batch, "label"), *copies = batch_int32(batch, "copy");
    const int64_t *samples = batch_int64(batch, "sample");
    uint64_t stream = train ? rng_hash("noise") ^ (epoch + 1) * 0x9E3779B97F4A7C15u
                            : rng_hash("noise of an evaluation");
    int64_t rows = batch_rows(batch); /* at most those of the network */
    const struct latent *latent = &own->latent;
    const struct shape image = latent->plan
                                   ? SHAPE(rows, latent->channels, latent->side, latent->side)
                                   : batch_find(batch, "image")->shape;
    if (latent->plan && !(images = latent_run(&own->latent, rows, images, err)))
        return false;
#pragma omp parallel for num_threads(learning->threads) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        uint64_t name = (uint64_t)samples[i] | (uint64_t)copies[i] << 48;
        struct rng rng = rng_new((uint64_t)learning->config->seed, stream, name);
        set_condition(learning, &rng, labels[i], samples[i],
                      own->conditions + i * ports->conditions);
        const float *row = images + i * ports->floats;
        if (!latent->plan) {
            colour_to_learnt((enum colour)learning->config->generate.colour, ports->floats / 3, row,
                             own->learnt + i * ports->floats);
            row = own->learnt + i * ports->floats;
        }
        make_noisy(learning, rng, i, row);
    }
    batch_put(batch, (struct batch_item){ "noisy", BATCH_FLOAT, image, own->noisy });
    batch_put(batch, (struct batch_item){ "wanted", BATCH_FLOAT, image, own->wanted });
    batch_put(batch,
              (struct batch_item){ "time", BATCH_FLOAT, SHAPE(rows, ports->features), own->times });
    batch_put(batch, (struct batch_item){ "drawn", BATCH_FLOAT, SHAPE(rows), own->drawn });
    if (ports->condition >= 0)
        batch_put(batch, (struct batch_item){ "condition", BATCH_FLOAT,
                                              SHAPE(rows, ports->conditions), own->conditions });
    return true;
}

/* --- loss --- */

/* Of one sample; its gradient, by `factor`, unless NULL. */
static double row_loss(const struct learning *learning, const struct comparison *c, int64_t row,
                       double factor, float *gradient)
{
    const struct generate *own = learning->own;
    int64_t floats = own->ports.floats, first = row * floats;
    return loss_row_mse(floats, factor, c->outputs + first,
                        batch_floats(c->batch, "wanted") + first,
                        gradient ? gradient + first : NULL);
}

static bool generate_loss(struct learning *learning, const struct comparison *c, double *loss,
                          struct err *err)
{
    const struct generate *own = learning->own;
    (void)err;
    *loss = 0;
    if (c->gradient)
        memset(c->gradient, 0,
               (size_t)(batch_rows(c->batch) * own->ports.floats) * sizeof *c->gradient);
    for (int64_t i = 0; i < c->batch->n; i++)
        *loss += row_loss(learning, c, i, 1 / c->divisor, c->gradient) / c->divisor;
    return true;
}

static bool generate_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                          struct predictions *to, struct err *err)
{
    const float *drawn = batch_floats(c->batch, "drawn");
    const int64_t *samples = batch_int64(c->batch, "sample");
    if (!predictions_grow(to, c->batch->n, err))
        return false;
    for (int64_t i = 0; i < c->batch->n; i++, to->n++) {
        to->values[to->n] = (float)row_loss(learning, c, i, 0, NULL);
        to->truths[to->n] = drawn[i];
        to->samples[to->n] = samples[i];
    }
    to->loss_sum += loss_sum;
    return true;
}

static bool generate_judge(const struct learning *learning, const struct predictions *predictions,
                           double *values, struct err *err)
{
    (void)learning, (void)predictions, (void)values, (void)err;
    return true;
}

static bool generate_write(const struct learning *learning, const char *prefix,
                           const struct predictions *found, struct err *err)
{
    char *path = text_format("%slosses.csv", prefix);
    struct file_out out;
    if (!path)
        return err_memory(err, "the losses");
    bool ok = file_out_open(&out, path, err);
    if (ok) {
        fputs("sample,patient,time,loss\n", out.stream);
        for (int64_t i = 0; i < found->n; i++) {
            dataset_put_sample(learning->dataset, found->samples[i], out.stream);
            fprintf(out.stream, ",%.9g,%.9g\n", (double)found->truths[i], (double)found->values[i]);
        }
        ok = file_out_commit(&out, err);
    }
    free(path);
    return ok;
}

static void generate_describe(const struct learning *learning, struct model_config *card)
{
    const struct train_config *config = learning->config;
    const struct generate *own = learning->own;
    card->objective = OBJECTIVE_GENERATE;
    card->num_classes = (int64_t)config->classes.n;
    card->class_names = config->classes.items;
    card->generator = (struct model_generator){ .process = config->generate.process,
                                                .colour = config->generate.colour,
                                                .by_class = class_features(config) > 0,
                                                .latent = own->latent_network,
                                                .centres = own->centres.names,
                                                .n_centres = own->centres.n };
}

static void generate_free(struct learning *learning)
{
    struct generate *own = learning->own;
    if (!own)
        return;
    centres_free(&own->centres);
    latent_close(&own->latent);
    free(own->latent_network);
    free(own->noisy);
    free(own->wanted);
    free(own->learnt);
    free(own->times);
    free(own->conditions);
    free(own->drawn);
    free(own);
    learning->own = NULL;
}

static const struct objective_feed generate_feeds[] = { { "noisy", "input", false },
                                                        { "time", "time", false },
                                                        { "condition", "condition", true },
                                                        { 0 } };
static const char *const generate_plots[] = { NULL };

const struct objective objective_generate = {
    .name = "generate",
    .takes = "patches: patch stores (.h5), folders of images, tar files",
    .truth = TRUTH_LABELS,
    .feeds = generate_feeds,
    .output = "noise",
    .plots = generate_plots,
    .monitor = "loss",
    .mode = PLAN_TRAIN,
    .test = true,
    .generates = true,
    .settle = generate_settle,
    .inputs = generate_inputs,
    .build = generate_build,
    .prepare = generate_prepare,
    .accompany = generate_accompany,
    .loss = generate_loss,
    .keep = generate_keep,
    .judge = generate_judge,
    .write = generate_write,
    .describe = generate_describe,
    .free = generate_free,
};
