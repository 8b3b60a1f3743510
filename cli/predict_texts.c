/* predict_texts.c: microtome predict on a table of texts or recordings. */
#include "base/console.h"
#include "base/json.h"
#include "cli/predict.h"
#include "train/score_recordings.h"
#include "train/score_texts.h"

static void print_json(FILE *stream, const char *what, const struct score_table_result *result)
{
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_int(&json, what, result->n);
    json_out_int(&json, "cut", result->cut);
    json_out_int(&json, "labelled", result->labelled);
    json_out_int(&json, "correct", result->correct);
    json_out_close_object(&json);
    json_out_end(&json);
}

bool predict_texts(struct app *app, const struct predict_args *given, char *const *tables,
                   int n_tables, struct err *err)
{
    struct score_table_result result = { 0 };
    struct score_table_request request = { .model = given->models.items[0],
                                           .table = tables[0],
                                           .folder = given->output,
                                           .overwrite = given->overwrite };
    bool heard = score_recordings_takes(request.model);
    const char *what = heard ? "recordings" : "texts";
    if (n_tables > 1)
        return err_set(err, ERR_USAGE, "a model of %s takes one table; join them into one file",
                       what);
    if (given->cluster.on > 0)
        return err_set(err, ERR_USAGE, "--on: a table of %s is scored on this computer", what);
    if (!score_table_run(heard ? &score_recordings : &score_texts, &request, &app->ctx, &result,
                         err))
        return false;
    if (result.cut > 0)
        console_note(app->ctx.console, "%lld of %lld %s were longer than the model takes%s",
                     (long long)result.cut, (long long)result.n, what,
                     result.windows ? "; their scores are means over windows" : "");
    if (given->json)
        print_json(app->out, what, &result);
    else if (result.labelled > 0)
        fprintf(app->out, "%lld %s, %lld of %lld labels are the class with the highest score\n",
                (long long)result.n, what, (long long)result.correct, (long long)result.labelled);
    else
        fprintf(app->out, "%lld %s\n", (long long)result.n, what);
    return true;
}
