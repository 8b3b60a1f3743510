/* classifier.c: see classifier.h. */
#include "net/model/classifier.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "net/graph/transform.h"

#define SLACK 1e-5 /* by which probabilities of floats may miss 0, 1 and the sum of 1 */

const char *const model_outputs_names[] = { "auto", "probabilities", "logits", NULL };

/* The softmax or sigmoid at the end of a graph, also in front of nodes that change no number or
 * only round it; NULL if there is none. *rounding: the last node behind it that rounds; NULL: none.
 */
static const struct node *find_ending(const struct graph *graph, const struct node **rounding)
{
    const struct value *value = &graph->values[graph->outputs[0].value];
    *rounding = NULL;
    while (value->kind == VALUE_NODE) {
        const struct node *node = &graph->nodes[value->node];
        switch (node->op->kind) {
        case OP_SOFTMAX:
        case OP_LOG_SOFTMAX:
        case OP_SIGMOID:
            return node;
        case OP_SCALE:
            if (node->attr.scale.factor != 1 || node->attr.scale.offset != 0)
                return NULL;
            break;
        case OP_CONVERT:
            *rounding = *rounding ? *rounding : node;
            break;
        case OP_RESHAPE:
        case OP_FLATTEN:
        case OP_DROPOUT:
            break;
        default:
            return NULL;
        }
        value = &graph->values[node->inputs[0]];
    }
    return NULL;
}

const char *model_ending(const struct model *model)
{
    const struct node *rounding, *node = find_ending(model->graph, &rounding);
    return model->ending ? model->ending : node ? node->op->onnx : NULL;
}

/* Whether a softmax runs over all classes of each image. */
static bool runs_over_classes(const struct graph *graph, const struct node *node, int64_t classes)
{
    const struct shape *shape = graph_shape(graph, node->output);
    int axis = axis_of(node->attr.axis.axis, shape->rank);
    return axis >= 1 && shape->dim[axis] == classes &&
           shape_count(shape) == shape->dim[0] * shape->dim[axis];
}

static bool bypass(struct model *model, const struct node *node, struct err *err)
{
    struct graph *graph = NULL;
    if (!transform_bypass(model->graph, node->output, &graph, err))
        return false;
    graph_free(model->graph);
    model->graph = graph;
    return true;
}

/* With it goes what rounds behind it: that is made for probabilities. */
static bool take_off(struct model *model, const struct node *ending, struct err *err)
{
    const struct node *rounding;
    int64_t classes = model->config.num_classes;
    bool softmax = ending->op->kind != OP_SIGMOID;
    if (softmax && (classes < 2 || !runs_over_classes(model->graph, ending, classes)))
        return err_set(err, ERR_FORMAT,
                       "%s: ends in %s, but not over two or more classes per image, so its outputs "
                       "are neither logits nor probabilities",
                       model->name, ending->op->onnx);
    model->ending = ending->op->onnx;
    model->rule = softmax ? SCORE_SOFTMAX : SCORE_SIGMOID;
    while ((ending = find_ending(model->graph, &rounding), rounding))
        if (!bypass(model, rounding, err))
            return false;
    return bypass(model, ending, err);
}

static bool refuse_outputs(const struct model *model, const struct graph *graph, struct err *err)
{
    char list[400] = "", shape[SHAPE_TEXT];
    for (int i = 0; i < graph->n_outputs; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s'%.60s' %s", i ? ", " : "",
                 graph->outputs[i].name,
                 shape_text(graph_shape(graph, graph->outputs[i].value), shape));
    }
    return err_set(err, ERR_FORMAT,
                   "%s: has %d outputs (%s), and nothing says which one contains the class scores; "
                   "export it with that output only",
                   model->name, graph->n_outputs, list);
}

int64_t model_count(const struct model *model)
{
    return model_gives_features(model) ? model->n_scores : model->config.num_classes;
}

bool model_check_classifies(const struct model *model, const struct graph *graph, struct err *err)
{
    const struct shape *image = graph_shape(graph, graph->inputs[0].value);
    char text[SHAPE_TEXT];
    if (image->dim[1] != 3)
        return err_set(
            err, ERR_FORMAT,
            "%s: expects %lld channels %s; images are RGB, so only networks with 3 input "
            "channels, or 1 for grey, can be run on them",
            model->name, (long long)image->dim[1], shape_text(image, text));
    if (graph->n_outputs != 1)
        return refuse_outputs(model, graph, err);
    const struct shape *shape = graph_shape(graph, graph->outputs[0].value);
    shape_text(shape, text);
    int64_t classes = model_count(model);
    bool by_image = shape->rank > 0 && shape->dim[0] == image->dim[0];
    if (by_image && (shape->rank == 2 || shape->rank == 4 || (shape->rank == 1 && classes == 1)) &&
        shape_count(shape) == shape->dim[0] * classes)
        return true;
    if (by_image && shape->rank == 4)
        return err_set(err, ERR_FORMAT,
                       "%s: returns a map %s for an image of %lld x %lld px, not one score per "
                       "class; pool it in the network, or use images of the size it expects",
                       model->name, text, (long long)image->dim[3], (long long)image->dim[2]);
    return err_set(err, ERR_FORMAT,
                   "%s: returns %s for %lld image%s, not class scores [images, classes]%s",
                   model->name, text, (long long)image->dim[0], image->dim[0] == 1 ? "" : "s",
                   shape->rank == 3 ? "; are these tokens or features?" : "");
}

bool model_predicts_number(const struct model *model)
{
    return model->rule == SCORE_NUMBER;
}

/* A network of one channel sees images in grey. */
static bool accept_rgb(struct model *model, struct err *err)
{
    struct graph *grey = NULL;
    if (graph_shape(model->graph, model->graph->inputs[0].value)->dim[1] != 1)
        return true;
    if (!transform_grey(model->graph, &grey, err))
        return err_prefix(err, model->name);
    graph_free(model->graph);
    model->graph = grey;
    return true;
}

bool model_gives_features(const struct model *model)
{
    return model->rule == SCORE_FEATURES;
}

bool model_as_extractor(struct model *model, enum model_outputs given, struct err *err)
{
    if (given != OUTPUTS_AUTO)
        return err_set(err, ERR_USAGE, "--scores %s: %s gives features, not scores; omit it",
                       model_outputs_names[given], model->name);
    return accept_rgb(model, err) && model_check_classifies(model, model->graph, err);
}

/* What config.json says of the outputs. */
static enum model_outputs as_described(const struct model_config *config)
{
    enum model_meaning meaning = config->n_outputs > 0 ? config->outputs[0].meaning : 0;
    return meaning == MEANING_LOGITS          ? OUTPUTS_LOGITS
           : meaning == MEANING_PROBABILITIES ? OUTPUTS_PROBABILITIES
                                              : OUTPUTS_AUTO;
}

bool model_as_classifier(struct model *model, enum model_outputs given, struct err *err)
{
    model->outputs = given;
    if (model->config.objective == OBJECTIVE_SEGMENT)
        return err_set(err, ERR_USAGE,
                       "%s: segments nuclei: it gives a class for every pixel, not for an image; "
                       "use microtome nuclei --model",
                       model->name);
    if (model_gives_features(model))
        return err_set(err, ERR_USAGE,
                       "%s: gives %lld features of an image, not class scores; 'microtome model "
                       "run' writes them",
                       model->name, (long long)model->n_scores);
    if (!accept_rgb(model, err) || !model_check_classifies(model, model->graph, err))
        return false;
    if (model_predicts_number(model))
        return given == OUTPUTS_AUTO ||
               err_set(err, ERR_USAGE,
                       "--scores %s: %s predicts a number (%s), not scores; omit it",
                       model_outputs_names[given], model->name, model->config.target.name);
    if (given == OUTPUTS_AUTO)
        model->outputs = given = as_described(&model->config);
    const struct node *rounding, *ending = find_ending(model->graph, &rounding);
    if (ending && given != OUTPUTS_LOGITS)
        return take_off(model, ending, err);
    if (given == OUTPUTS_PROBABILITIES)
        model->rule = SCORE_AS_IS;
    return true;
}

bool model_open_classifier(const struct model_source *source, struct model **out, struct err *err)
{
    struct model *model = NULL;
    if (!model_open(source, &model, err))
        return false;
    if (!model_as_classifier(model, source->outputs, err)) {
        model_close(model);
        return false;
    }
    *out = model;
    return true;
}

static bool copy_probabilities(const struct model *model, const float *outputs, double *scores,
                               struct err *err)
{
    for (int64_t i = 0; i < model->config.num_classes; i++) {
        scores[i] = (double)outputs[i];
        if (scores[i] < -SLACK || scores[i] > 1 + SLACK)
            return err_set(
                err, ERR_FORMAT,
                "%s: returned %g, which is not a probability; omit --scores probabilities",
                model->name, scores[i]);
    }
    return true;
}

bool model_score(const struct model *model, const float *outputs, double *scores, struct err *err)
{
    int64_t classes = model->config.num_classes;
    if (model->rule == SCORE_AS_IS)
        return copy_probabilities(model, outputs, scores, err);
    for (int64_t i = 0; model->rule == SCORE_FEATURES && i < model->n_scores; i++)
        scores[i] = (double)outputs[i];
    if (model->rule == SCORE_NUMBER)
        scores[0] = (double)outputs[0] * model->config.target.std + model->config.target.mean;
    if (model->rule == SCORE_SOFTMAX)
        model_scores(outputs, classes, scores);
    for (int64_t i = 0; model->rule == SCORE_SIGMOID && i < classes; i++)
        model_scores(outputs + i, 1, scores + i);
    return true;
}

bool model_seems_scored(const struct model *model, const float *outputs)
{
    double sum = 0;
    if (model->outputs != OUTPUTS_AUTO || model->ending || model->rule != SCORE_SOFTMAX)
        return false;
    for (int64_t i = 0; i < model->config.num_classes; i++) {
        if (!(outputs[i] >= 0 && outputs[i] <= 1))
            return false;
        sum += (double)outputs[i];
    }
    return fabs(sum - 1) < SLACK;
}

bool model_refuse_scored(const struct model *model, struct err *err)
{
    return err_set(
        err, ERR_FORMAT,
        "%s: its outputs are between 0 and 1 and add up to 1, so they seem to be probabilities "
        "already; pass --scores probabilities, or --scores logits if they are not",
        model->name);
}

const char *model_outputs_text(const struct model *model, char text[MODEL_OUTPUTS_TEXT],
                               bool *usual)
{
    const char *ending = model_ending(model);
    const char *rule = model->rule == SCORE_SIGMOID ? "sigmoid" : "softmax";
    *usual = false;
    if (model_gives_features(model)) {
        snprintf(text, MODEL_OUTPUTS_TEXT, "none: its outputs are %lld features",
                 (long long)model->n_scores);
        *usual = true;
        return text;
    }
    if (model_predicts_number(model)) {
        snprintf(text, MODEL_OUTPUTS_TEXT, "it predicts a number: %.60s%s%.30s",
                 model->config.target.name, model->config.target.unit[0] ? ", " : "",
                 model->config.target.unit);
        return text;
    }
    if (model->rule == SCORE_AS_IS) {
        snprintf(text, MODEL_OUTPUTS_TEXT, "its outputs are the scores (--scores probabilities)");
    } else if (model->outputs == OUTPUTS_LOGITS && ending) {
        snprintf(text, MODEL_OUTPUTS_TEXT,
                 "it ends in %s, and the scores are the %s of its outputs (--scores logits)",
                 ending, rule);
    } else if (ending) {
        snprintf(text, MODEL_OUTPUTS_TEXT,
                 "it ends in %s: its outputs are %s, and no second %s is applied (--scores "
                 "overrides this)",
                 ending, strcmp(ending, "LogSoftmax") == 0 ? "log probabilities" : "probabilities",
                 rule);
    } else {
        snprintf(text, MODEL_OUTPUTS_TEXT, "its outputs are logits, and the scores are their %s",
                 rule);
        *usual = true;
    }
    return text;
}

const char *model_outputs_word(const struct model *model)
{
    if (model->rule == SCORE_AS_IS)
        return "as-given";
    if (model_predicts_number(model))
        return "number";
    return model->ending ? model->ending : "logits";
}
