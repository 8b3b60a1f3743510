/* explain_words.c: microtome explain words: a table of texts and a model of texts -> the words that
 * its scores come from. */
#include "base/console.h"
#include "base/json.h"
#include "cli/explain.h"
#include "explain/word_run.h"
#include "train/score_texts.h"

static void print(FILE *stream, const struct explain_args *given, const struct word_result *result)
{
    struct json_out json;
    if (!given->json) {
        fprintf(stream, "%s/index.html: %lld text%s, %lld words", given->output,
                (long long)result->texts, result->texts == 1 ? "" : "s", (long long)result->words);
        if (result->integrated)
            fprintf(stream,
                    "; weights add up to the difference of the logits, but for %.1g (of up to "
                    "%.3g)",
                    result->most_apart, result->most_between);
        fputc('\n', stream);
        return;
    }
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_int(&json, "texts", result->texts);
    json_out_int(&json, "words", result->words);
    if (result->integrated) {
        json_out_real(&json, "most_apart", result->most_apart);
        json_out_real(&json, "largest_difference", result->most_between);
    }
    json_out_close_object(&json);
    json_out_end(&json);
}

bool explain_words(struct app *app, const void *options, char *const *operands, int n_operands,
                   struct err *err)
{
    const struct explain_args *given = options;
    struct word_result result;
    struct word_request request = { .model = given->model,
                                    .table = operands[0],
                                    .folder = given->output,
                                    .methods = given->methods,
                                    .class_name = given->class_name,
                                    .steps = given->ig_steps,
                                    .overwrite = given->overwrite };
    if (n_operands > 1)
        return err_set(err, ERR_USAGE, "words: pass one table of texts");
    if (!given->model)
        return err_set(err, ERR_USAGE, "words: pass --model, the folder of a training on texts");
    if (!score_texts_takes(given->model))
        return err_set(err, ERR_USAGE,
                       "%s: not a model of texts; 'explain map' explains models of images",
                       given->model);
    if (given->cluster.on > 0)
        return err_set(err, ERR_USAGE, "--on: a table of texts is explained on this computer");
    if (!word_run(&request, &app->ctx, &result, err))
        return false;
    if (result.integrated && result.most_apart > 0.01 * result.most_between)
        console_warn(app->ctx.console,
                     "the weights of integrated gradients do not add up to the difference of the "
                     "logits; raise --ig-steps");
    print(app->out, given, &result);
    return true;
}
