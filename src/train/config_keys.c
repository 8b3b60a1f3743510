/* config_keys.c: every key of a training's config (config.h), in the order of the template. */
#include <math.h>
#include <stddef.h>
#include "diffusion/colour.h"
#include "diffusion/process.h"
#include "net/stages/program.h"
#include "text/sequence.h"
#include "train/config.h"

static const char *const paddings[] = { "zero", "reflect", "replicate", "valid", NULL };
static const char *const splits[] = { "patient", "attribute", NULL };
static const char *const balances[] = { "none", "weights", "sampling", NULL };
const char *const config_monitors[] = { "auto", "auc", "loss", "accuracy",
                                        "last", "r2",  "dice", NULL };
const char *const config_losses[] = { "auto", "softmax", "sigmoid", "mse", "huber", "dice", NULL };
const char *const config_activations[] = { "auto", "softmax", "sigmoid", "none", NULL };
static const char *const on_nan[] = { "stop", "skip", NULL };
static const char *const memories[] = { "plain", "recompute", "half", "stream", "auto", NULL };
static const char *const stores[] = { "single", "bf16", NULL };
static const char *const recomputes[] = { "auto", "true", "false", NULL };
static const char *const binds[] = { "auto", "none", NULL };
static const char *const conditions[] = { "class", "none", NULL };
const char *const privacy_units[] = { "patch", "patient", NULL };
const char *const privacy_accountants[] = { "auto", "rdp", "prv", NULL };
static const char *const distill_losses[] = { "probabilities", "logits", NULL };

#define AT(field) offsetof(struct train_config, field)
#define KEY(kind, key, field, value, text, ...)                                                    \
    {                                                                                              \
        .path = key, .type = kind, .offset = AT(field), .initial = value, .help = text,            \
        __VA_ARGS__                                                                                \
    }
#define INT(key, field, from, to, value, text)                                                     \
    KEY(CONFIG_INT, key, field, value, text, .min = from, .max = to)
#define REAL(key, field, from, to, value, text)                                                    \
    KEY(CONFIG_REAL, key, field, value, text, .min = from, .max = to)
#define RGB(key, field, from, to, value, text)                                                     \
    KEY(CONFIG_RGB, key, field, value, text, .min = from, .max = to)
#define PARTS(key, field, from, to, value, text)                                                   \
    KEY(CONFIG_PARTS, key, field, value, text, .min = from, .max = to)
#define BOOL(key, field, value, text) KEY(CONFIG_BOOL, key, field, value, text, )
#define TEXT(key, field, value, text) KEY(CONFIG_TEXT, key, field, value, text, )
#define TEXTS(key, field, value, text) KEY(CONFIG_TEXTS, key, field, value, text, )
#define CHOICE(key, field, names, value, text)                                                     \
    KEY(CONFIG_CHOICE, key, field, value, text, .choices = names)

const struct config_key config_keys[] = {
    INT("seed", seed, 0, 9e15, "0",
        "random seed for weights, order and augmentation; the same seed gives the same run"),
    CHOICE("objective", objective, objective_names, "classify",
           "what is learnt: classify: the class of a patch, a slide or a text; distill: see "
           "distill.teacher, which "
           "implies it; encode: patches to small maps and back, for generate.latent; generate: new "
           "patches, see docs/synthesize.md; mask: tokens of texts that are hidden, see "
           "docs/text.md; regress: a number for a "
           "patch, from stores of 'extract --target'; segment: "
           "nuclei, from images NAME.png with label images NAME_labels.png beside them"),
    TEXTS(
        "classes", classes, "[normal, tumor]",
        "class names; with this default, those of the stores, if they have other ones. Label 0 in "
        "a store without names is the first. In folders of images the class is given by a folder "
        "of this name, or by _class0 in the file name"),

    TEXT("network.name", network.name, "scan_tiny",
         "network from the zoo; 'microtome model list' lists them"),
    INT("network.input_px", network.input_px, 8, 8192, "224",
        "side of the network's input; patches are cropped to it"),
    CHOICE("network.padding", network.padding, paddings, "zero",
           "padding of convolutions and pooling; valid: none, for exact heatmaps"),
    CHOICE("network.head", network.head, head_names, "auto",
           "how the last map becomes classes; auto: as the network does it; mean, lse "
           "(log-sum-exp), max: pooled so, then the linear layer; attention: a mean with learnt "
           "weights; classes: the linear layer at every cell, then log-sum-exp"),
    CHOICE("network.norm", network.norm, norm_names, "batch",
           "batch: batch norm, where the network has it; frozen: with the statistics of the "
           "starting weights; ws: standardised weights instead of it; fixup: none, with initial "
           "values that suit residual networks; group: group norm, which private training needs"),
    CHOICE("network.activation", network.activation, config_activations, "auto",
           "how the last layer's outputs become predictions; auto: what train.loss needs"),
    TEXT("network.weights", network.weights, "''",
         "safetensors file to start from; '': random, from the seed"),
    TEXTS("network.fresh", network.fresh, "[fc., head., classifier., bert.pooler., cls., lm_head.]",
          "prefixes of layers that may be missing from the starting weights or differ in shape: a "
          "new head"),

    TEXTS("data.train", data.train, "[]",
          "patch stores (.h5), folders of them, folders of images, tar files"),
    TEXTS("data.slides", data.slides, "[]",
          "instead of data.train: slide lists (CSV with the columns slide and label, and perhaps "
          "patient, mpp, split); each slide is one image, learnt from its label alone"),
    TEXT("data.label", data.label, "label",
         "for data.slides: column with the class, or with the number for regress; for data.text "
         "and data.audio: column with the class"),
    TEXT("data.text", data.text, "''",
         "column with the text: data.train, data.val and data.test are then tables of texts (CSV)"),
    TEXT("data.audio", data.audio, "''",
         "column with the WAV file of a recording, from the folder of the table on: data.train, "
         "data.val and data.test are then tables of recordings (CSV)"),
    REAL("data.max_seconds", data.max_seconds, 0.1, 20.48, "10",
         "for data.audio: seconds of a recording that a network takes; see data.long"),
    TEXT("data.patient_column", data.patient_column, "''",
         "for data.text and data.audio: column with the patient; '': patient, or, without such a "
         "column, every "
         "row is a patient of its own"),
    TEXT("data.id", data.id, "''",
         "for data.text and data.audio: column with the id of a row in the scores of predict; '': "
         "its number"),
    TEXT("data.tokenizer", data.tokenizer, "''",
         "for data.text: vocab.txt of BERT, or tokenizer.json; '': a vocabulary is learnt from the "
         "training texts"),
    INT("data.vocabulary", data.vocabulary, 100, 1 << 20, "8000",
        "for data.text: most tokens of a learnt vocabulary"),
    BOOL("data.keep_case", data.keep_case, "false",
         "for data.text: a vocab.txt has capital letters and accents"),
    INT("data.max_tokens", data.max_tokens, 4, 512, "256",
        "for data.text: tokens that a network takes; see data.long"),
    CHOICE("data.long", data.long_rule, sequence_rule_names, "truncate",
           "what is kept of longer texts: truncate: the beginning; head_tail: beginning and end, "
           "half each; refuse: they are an error; windows: all of it, as sequences that overlap, "
           "whose scores are averaged; training draws one of them in every epoch. Recordings: "
           "truncate or refuse"),
    REAL("data.window_overlap", data.window_overlap, 0, 0.9, "0.25",
         "for data.long: windows: the part of a window that the next one has too"),
    REAL("data.mpp", data.mpp, 0, 1000, "0",
         "for data.slides: um per pixel at which slides are read; 0: data.long_side_px"),
    INT("data.long_side_px", data.long_side_px, 0, 1 << 20, "0",
        "for data.slides: the tissue's bounding box is scaled so that its longer side has this "
        "many pixels; 0: data.mpp"),
    TEXTS("data.val", data.val, "[]",
          "the same for validation; empty: split from data.train or data.slides"),
    TEXTS("data.test", data.test, "[]",
          "the same for testing: evaluated once, with the weights that are kept, and never used to "
          "choose them"),
    TEXTS("data.synthetic", data.synthetic, "[]",
          "synthetic patches ('microtome synthesize sample'), learnt from beside data.train; they "
          "are "
          "of no patient and never used for validation or testing"),
    REAL(
        "data.synthetic_share", data.synthetic_share, 0, 0.99, "0",
        "fraction of an epoch that is drawn from data.synthetic, anew in every epoch: 0.5: as many "
        "synthetic as real patches; 0: every synthetic patch once"),
    CHOICE("data.split", data.split, splits, "patient",
           "without data.val: patient: whole patients, drawn at random from the seed; attribute: "
           "the stores' attribute split (train, val, test)"),
    REAL("data.val_fraction", data.val_fraction, 0.01, 0.9, "0.2",
         "fraction of patients used for validation, with split: patient"),
    INT("data.folds", data.folds, 0, 1000, "0",
        "with split: patient: patients are dealt into this many folds, at random from the seed, "
        "instead of drawing a fraction; data.fold says which one is for validation; 0: no folds"),
    INT("data.fold", data.fold, 1, 1000, "1",
        "the fold for validation, from 1 to data.folds; --sweep data.fold=1,2,3 trains them all"),
    TEXT("data.patient", data.patient, "''",
         "extended regular expression for an image's file name; its first group is the patient. "
         "'': NAME_idx5_x1_y2 and NAME_x_y. Stores record the patient themselves"),
    CHOICE("data.balance", data.balance, balances, "none",
           "weights: rare classes count more in the loss; sampling: rare classes are drawn more "
           "often"),
    TEXT("data.hard_negatives", data.hard_negatives, "''",
         "CSV with the columns store and patch, as written by --mine: these patches are added to "
         "training as the first class"),
    INT("data.resize_px", data.resize_px, 0, 8192, "0",
        "patches are resized to this side first; 0: not resized"),
    INT("data.window_mb", data.window_mb, 1, 1048576, "256",
        "MB of store groups kept in memory and shuffled together; twice this is used"),
    INT("data.workers", data.workers, 1, 256, "2", "threads that decode and augment"),
    REAL("data.spacing_um_px", data.spacing_um_px, 0, 100, "0",
         "um per pixel of the patches, for the model's config.json; 0: taken from the stores"),
    CHOICE("data.stain", data.stain, stain_method_names, "none",
           "normalise the stains of every patch, fitted to that patch alone; the model then "
           "expects this wherever it is used. Stores from 'extract --stain', which are fitted to "
           "the slide as in predict, do not need it"),
    TEXT("data.stain_template", data.stain_template, "''",
         "PNG to normalise to; '': the built-in template"),
    RGB("data.mean", data.mean, 0, 1, "[0.485, 0.456, 0.406]",
        "mean of RGB / 255, subtracted from it"),
    RGB("data.std", data.std, 0.001, 10, "[0.229, 0.224, 0.225]",
        "standard deviation of RGB / 255, by which the difference is divided"),

    BOOL("augment.flip", augment.flip, "true",
         "mirror patches at random, left-right and top-bottom"),
    BOOL("augment.rotate", augment.rotate, "true",
         "rotate patches by random multiples of 90 degrees"),
    REAL("augment.hsv_noise", augment.hsv_noise, 0, 255, "0",
         "offsets added to hue, saturation and value, up to this; 20 in the FDA's pipeline"),
    REAL("augment.hed_jitter", augment.hed_jitter, 0, 1, "0",
         "stain jitter of Tellez et al.: haematoxylin, eosin and DAB (natural optical density) are "
         "each multiplied by 1 +- this and shifted by +- this; their light setting is 0.05, the "
         "strong one 0.2"),
    REAL("augment.brightness", augment.brightness, 0, 1, "0",
         "random factor of the brightness: 1 +- this"),
    REAL("augment.contrast", augment.contrast, 0, 1, "0",
         "random factor of the contrast: 1 +- this"),
    REAL("augment.saturation", augment.saturation, 0, 1, "0",
         "random factor of the saturation: 1 +- this"),
    REAL("augment.hue", augment.hue, 0, 0.5, "0",
         "random shift of the hue: +- this fraction of the colour circle"),
    REAL("augment.blur", augment.blur, 0, 1, "0", "probability of a Gaussian blur"),
    REAL("augment.blur_sigma", augment.blur_sigma, 0.1, 16, "2",
         "largest standard deviation of the blur, in px"),
    REAL(
        "augment.voice", data.voice, 0, 0.5, "0.1",
        "for data.audio: recordings as another voice would speak them: speed and frequencies are "
        "changed by up to this fraction, and up to this fraction of the frames and of the bands is "
        "unheard; 0: as they are"),

    INT("train.epochs", train.epochs, 1, 1000000, "10", "passes over the training data"),
    INT("train.batch", train.batch, 1, 65536, "32", "patches per batch, on each rank"),
    INT("train.accumulate", train.accumulate, 1, 65536, "1",
        "batches whose gradients are summed for one step"),
    REAL("train.clip", train.clip, 0, 1e9, "0", "maximum norm of the gradient; 0: no limit"),
    CHOICE("train.loss", train.loss, config_losses, "auto",
           "softmax: cross-entropy of one class out of all; sigmoid: cross-entropy of every class "
           "by itself; mse and huber, for regress: squares of the differences, or these only up "
           "to huber_delta; dice, for segment: softmax plus 1 - Dice of inside and boundary; auto: "
           "softmax, or mse for regress"),
    REAL("train.huber_delta", train.huber_delta, 1e-6, 1e6, "1",
         "for huber: the difference beyond which the loss grows linearly, in standard deviations "
         "of the target"),
    REAL("train.smoothing", train.smoothing, 0, 0.99, "0", "label smoothing"),
    REAL("train.mixup", train.mixup, 0, 100, "0",
         "each patch and its label are blended with another of the batch, with shares drawn from "
         "Beta(this, this); 0.2 is usual; 0: off"),
    REAL("train.ema", train.ema, 0, 0.999999, "0",
         "decay of the moving average of the weights, which is then evaluated and kept; 0: off"),
    CHOICE("train.memory", train.memory, memories, "plain",
           "how activations are kept for the backward pass; recompute: some are computed twice, "
           "with the same gradients; half: plain with store: bf16; stream, for data.slides: tile "
           "by tile, for images of any size; auto: the first of plain, recompute and stream that "
           "fits memory_mb"),
    INT("train.memory_mb", train.memory_mb, 0, 1048576, "0",
        "for recompute: budget for activations and their gradients; 0: about the minimum. For auto "
        "and with data.slides: the most memory that the process may take (peak resident memory), "
        "in millions of bytes; 0: no limit"),
    CHOICE("train.store", train.store, stores, "single",
           "how activations are kept for the backward pass, or the strips between tiles; bf16: "
           "half the memory, but gradients change by a few tenths of a percent"),
    INT("train.tile_px", train.tile_px, 0, 65536, "0",
        "for stream: side of a tile; 0: the largest that fits memory_mb"),
    TEXT("train.spill", train.spill, "''",
         "for stream: folder for a file of the strips that exceed memory_mb; '': that of the run"),
    CHOICE("train.monitor", train.monitor, config_monitors, "auto",
           "measure that chooses the best weights, on the validation data (or, without any, on the "
           "training data); last: keep those of the last epoch; auto: auc for classify, r2 for "
           "regress, dice for segment, and the loss for distill"),
    BOOL("train.tta", train.tta, "false",
         "evaluate the best weights at the end with the mean score over the eight rotations and "
         "reflections of a patch, as predict --tta does; epochs are evaluated without"),
    CHOICE("train.on_nan", train.on_nan, on_nan, "stop",
           "if the loss or gradient is not a number: stop, or skip the step"),

    CHOICE("optimizer.name", optimizer.kind, optimizer_names, "sgd",
           "how gradients change the weights"),
    REAL("optimizer.momentum", optimizer.momentum, 0, 0.9999, "0.9",
         "fraction of the last step kept in the next; for sgd and lars"),
    BOOL("optimizer.nesterov", optimizer.nesterov, "false", "Nesterov's form of momentum; for sgd"),
    REAL("optimizer.beta1", optimizer.beta1, 0, 0.999999, "0.9",
         "decay of the mean of gradients; for adam and adamw"),
    REAL("optimizer.beta2", optimizer.beta2, 0, 0.999999, "0.999",
         "decay of the mean of their squares; for adam and adamw"),
    REAL("optimizer.epsilon", optimizer.epsilon, 1e-16, 1, "1.0e-8",
         "added to the square root of that mean; for adam and adamw"),
    REAL("optimizer.weight_decay", optimizer.weight_decay, 0, 10, "0.0001",
         "pulls weights towards 0, except norms and biases"),
    REAL("optimizer.trust", optimizer.trust, 1e-9, 10, "0.001", "trust coefficient; for lars"),

    CHOICE("schedule.name", schedule.kind, schedule_names, "cosine",
           "how the learning rate changes; plateau: it falls when the monitor stops improving, and "
           "training continues from the best weights"),
    REAL("schedule.learning_rate", schedule.learning_rate, 1e-12, 1000, "0.05",
         "learning rate on one rank; see ranks.scale_rate"),
    REAL("schedule.min_learning_rate", schedule.min_learning_rate, 0, 1000, "0",
         "rate at which cosine ends, and below which step and plateau never go"),
    REAL("schedule.warmup_epochs", schedule.warmup_epochs, 0, 1000000, "0",
         "epochs over which the rate rises to learning_rate"),
    REAL("schedule.step_epochs", schedule.step_epochs, 0.001, 1000000, "10",
         "for step: epochs between reductions"),
    REAL("schedule.factor", schedule.factor, 1e-6, 1, "0.1",
         "for step and plateau: factor by which the rate is multiplied"),
    INT("schedule.patience", schedule.patience, 1, 1000000, "5",
        "for plateau: epochs without improvement before the rate is reduced"),
    INT("schedule.stop_patience", schedule.stop_patience, 0, 1000000, "0",
        "epochs without improvement before training stops; 0: never"),
    REAL("schedule.min_improvement", schedule.min_improvement, 0, 1, "0",
         "smallest change that counts as an improvement"),

    BOOL("ranks.scale_rate", ranks.scale_rate, "true",
         "with several ranks (--ranks, mpirun): multiply the learning rate by their number"),
    BOOL("ranks.overlap", ranks.overlap, "true",
         "sum gradients while the backward pass is still running; results are bitwise the same"),
    BOOL("ranks.sync_bn", ranks.sync_bn, "false",
         "batch norm uses the statistics of the patches on all ranks, not just its own"),
    BOOL("ranks.shard_optimizer", ranks.shard_optimizer, "false",
         "each rank keeps the optimizer state for its part of the weights only (ZeRO-1); results "
         "are bitwise the same"),
    BOOL("ranks.compress", ranks.compress, "false",
         "deep gradient compression: send only the largest gradients and keep the rest for later; "
         "for sgd"),
    REAL("ranks.compress_keep", ranks.compress_keep, 1e-6, 1, "0.001",
         "fraction of the gradients that is sent"),
    INT("ranks.compress_warmup", ranks.compress_warmup, 0, 1000, "4",
        "epochs over which the fraction sent falls to compress_keep"),
    INT("ranks.bucket_mb", ranks.bucket_mb, 1, 4096, "25", "MB of gradients summed in one message"),
    INT("ranks.timeout_s", ranks.timeout_s, 0, 10000000, "7200",
        "seconds after which a rank that still waits for others gives them up as lost and ends the "
        "run, which can be resumed; more than the longest step; 0: it waits forever"),
    CHOICE("ranks.bind", ranks.bind, binds, "auto",
           "auto: on a machine with several NUMA nodes every rank uses the processors and the "
           "memory of one, unless the launcher has already bound it; none: as the system decides. "
           "'microtome doctor' shows the nodes; results are bitwise the same"),

    BOOL(
        "parallel.auto", pipeline.automatic, "false",
        "also written 'parallel: auto': measure the layers when training starts and take the grid, "
        "schedule, micro-batches and cuts that are simulated to be the fastest on the ranks that "
        "there are, with train.batch x train.accumulate x ranks patches in a step; what is chosen "
        "is in config.yaml. 'microtome train --plan-parallel' shows it beforehand"),
    INT("parallel.data", parallel[GRID_DATA], 0, 1 << 20, "0",
        "how several ranks divide the work: a grid whose extents multiply to their number. data: "
        "copies of the network that learn from different patches or slides; 0: what the others "
        "leave, which is all ranks as long as the others are 1"),
    INT("parallel.stages", parallel[GRID_STAGE], 1, STAGES_MOST, "1",
        "the network is cut into this many parts, one after another, each on another rank; a batch "
        "goes through them in micro-batches"),
    CHOICE(
        "parallel.schedule", pipeline.schedule, program_names, "1f1b",
        "the order in which stages work on micro-batches. basic: one after another; mast, "
        "master: pairs in opposite directions (GEMS), every stage being on two ranks; gpipe: all "
        "forward, then all backward; 1f1b: forward and backward take turns; zb-h1: the same, with "
        "gradients of weights computed while a rank would wait"),
    INT("parallel.times", pipeline.times, 0, 1 << 20, "0",
        "for master: pairs of micro-batches in a step; 0: as micro_batch makes them"),
    INT("parallel.micro_batch", pipeline.micro_batch, 0, 65536, "0",
        "patches in a micro-batch, over which batch norm takes its statistics; train.batch x "
        "train.accumulate must be a multiple. 0: train.batch, or what parallel.times makes of it. "
        "The same results as one process with train.batch set to this"),
    CHOICE("parallel.recompute", pipeline.recompute, recomputes, "auto",
           "stages keep only their inputs and run forward again before backward: less memory, a "
           "third more time, bitwise the same results. auto: for 1f1b, unless everything fits "
           "train.memory_mb"),
    TEXTS("parallel.cut", pipeline.cut, "[]",
          "names of the last layers of all stages but the last; []: stages of equal time, measured "
          "at the start. 'microtome model cut' shows them"),
    PARTS("parallel.space", space, 1, SPACE_MOST, "1x1",
          "rows x columns of parts that every patch is divided into, each on another rank: 2x2 "
          "takes four. Parts exchange their borders before every convolution: the same results to "
          "rounding, in a fraction of the memory"),
    INT("parallel.bands", parallel[GRID_BANDS], 1, 1 << 20, "1",
        "parts of one slide from top to bottom, a band of rows on each rank; for train.memory: "
        "stream"),
    INT("parallel.heads", parallel[GRID_HEADS], 1, 1 << 20, "1",
        "parts of every attention (by heads) and MLP (by columns) of a Transformer, each on "
        "another "
        "rank with its share of the weights: the same results to rounding. Neighbouring ranks "
        "differ in heads, then in bands, space, stage, data"),
    BOOL("parallel.sequence", sequence, "false",
         "with parallel.heads: between attention and MLPs, in norms and residual sums, each of "
         "these "
         "ranks has its part of the tokens; less memory for activations, and a half more to send "
         "backward"),

    INT("checkpoint.every_steps", checkpoint.every_steps, 0, 1000000000, "0",
        "steps between checkpoints, in addition to one after every epoch; 0: none"),
    INT("checkpoint.keep", checkpoint.keep, 1, 1000, "2",
        "number of most recent checkpoints to keep"),

    CHOICE(
        "generate.process", generate.process, process_names, "flow",
        "for objective generate: how patches become noise: flow: flow matching; edm; epsilon, v: "
        "the 1000 steps of DDPM, learning the noise, or noise and image"),
    CHOICE("generate.condition", generate.condition, conditions, "class",
           "for objective generate: what the network is told of a patch: its class, or nothing"),
    CHOICE(
        "generate.colour", generate.colour, colour_names, "rgb",
        "for objective generate: rgb: red, green and blue are learnt; apart: the three principal "
        "directions of stained tissue, each of the same deviation, which avoids grains of "
        "colours that no stain has; graded: the same, the first of twice the deviation of the "
        "second and that of twice the third's, which learns structure sooner"),
    TEXT("generate.centre", generate.centre, "''",
         "for objective generate: extended regular expression for the names of patients, whose "
         "first group is the centre or scanner, which the network is told too; '': it is not"),
    TEXT("generate.latent", generate.latent, "''",
         "for objective generate: folder of a training with objective encode: what is learnt are "
         "its small maps instead of pixels; '': pixels"),
    REAL(
        "generate.drop", generate.drop, 0, 1, "0.1",
        "for objective generate: share of patches of which it is told nothing, so that samples can "
        "be guided"),

    TEXT("distill.teacher", distill.teacher, "''",
         "model whose network, run densely, is fitted to its own window scores, without labels; "
         "the same as --distill-dense. Network, classes and normalisation are then the teacher's"),
    INT("distill.crop_px", distill.crop_px, 0, 8192, "0",
        "side of the crops run densely; 0: the whole patch"),
    INT("distill.margin_px", distill.margin_px, 0, 4096, "80",
        "windows closer than this to the edge of a crop are not compared"),
    INT("distill.windows", distill.windows, 1, 65536, "4", "windows compared per crop"),
    CHOICE("distill.loss", distill.loss, distill_losses, "probabilities",
           "probabilities: the divergence of the two; logits: the squared difference"),

    REAL("privacy.epsilon", privacy.epsilon, 0, INFINITY, "0",
         "differentially private training: the most that a training may give away of a unit, at "
         "delta; 8 is weak, 1 is strong; 0: not private; inf: gradients are clipped, without "
         "noise. See docs/private-training.md for what is then off"),
    REAL("privacy.delta", privacy.delta, 1e-15, 0.1, "1.0e-5",
         "the probability with which epsilon may be exceeded; less than 1 / units"),
    CHOICE("privacy.unit", privacy.unit, privacy_units, "patch",
           "what is protected: one patch, or all patches of a patient. train.batch x "
           "train.accumulate of them, on average, are in a step"),
    REAL("privacy.clip", privacy.clip, 1e-9, INFINITY, "1",
         "the largest norm of the gradient of a unit; longer ones are shortened to it"),
    INT("privacy.multiplicity", privacy.multiplicity, 1, 65536, "1",
        "patch: copies of it with other augmentation, whose gradients are averaged before they are "
        "clipped; patient: patches of the patient that are drawn for a step and averaged"),
    REAL("privacy.sigma", privacy.sigma, 0, 1e6, "0",
         "standard deviation of the noise on the sum, over clip; 0: the smallest that keeps to "
         "epsilon for all epochs"),
    CHOICE("privacy.accountant", privacy.accountant, privacy_accountants, "auto",
           "how epsilon is computed: rdp: Renyi divergences; prv: the loss distribution, "
           "numerically; auto: the one that needs less noise"),
    TEXTS("privacy.public_data", privacy.public_data, "[]",
          "which of data.val (val) and data.test (test) are public: private ones are not looked "
          "at, since what is found there would give them away"),
    TEXTS("privacy.tune", privacy.tune, "[all]",
          "what is learnt; the rest stays as in network.weights, without gradient and noise: all; "
          "adapters: matrices of low rank beside the weights, merged into them in the end; norms; "
          "biases; names of parameters, with * for any letters, e.g. [adapters, fc.*]"),
    INT("privacy.rank", privacy.rank, 1, 4096, "8", "rank of the adapters"),
    REAL("privacy.hold_out", privacy.hold_out, 0, 0.95, "0",
         "for audits, with and without epsilon: every unit is kept out of training with this "
         "probability; members.csv and others.csv in the results list both kinds"),

    TEXTS("mine.stores", mine.stores, "[]", "patch stores of normal tissue, for --mine"),
    REAL("mine.threshold", mine.threshold, 0, 1, "0.5",
         "a patch with this score or higher is a false positive"),
    INT("mine.limit", mine.limit, 0, 1e12, "0",
        "maximum number of false positives kept, worst first; 0: all"),
};
const size_t config_n_keys = sizeof config_keys / sizeof *config_keys;
