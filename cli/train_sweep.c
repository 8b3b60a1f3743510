/* train_sweep.c: microtome train --sweep: many trainings, and the table of their results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/claim.h"
#include "base/file.h"
#include "cli/train.h"

#define NAME_MOST 60 /* letters of a combination's name in the table */

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_number(FILE *out, double value, int decimals)
{
    if (isnan(value))
        fprintf(out, " %12s", "-");
    else
        fprintf(out, " %12.*f", decimals, value);
}

static void print_rows(FILE *out, const struct sweep *sweep)
{
    int width = (int)strlen("combination");
    bool tested = false;
    char val[48], test[48];
    for (size_t i = 0; i < sweep->n; i++) {
        int length = (int)strlen(sweep->items[i].name);
        width = length > width ? length : width;
        tested = tested || json_object_get(sweep->items[i].result, "test");
    }
    width = width < NAME_MOST ? width : NAME_MOST;
    snprintf(val, sizeof val, "val %.40s", sweep->measure);
    snprintf(test, sizeof test, "test %.40s", sweep->measure);
    fprintf(out, "%-*s %8s %6s %12s", width, "combination", "state", "epoch", val);
    fprintf(out, tested ? " %12s %10s\n" : "%.0s %10s\n", test, "seconds");
    for (size_t i = 0; i < sweep->n; i++) {
        const struct combination *one = &sweep->items[i];
        fprintf(out, "%-*.*s %8s", width, width, one->name, combination_state_names[one->state]);
        if (one->result)
            fprintf(out, " %6lld",
                    (long long)json_integer_value(json_object_get(one->result, "best_epoch")));
        else
            fprintf(out, " %6s", "-");
        print_number(out, sweep_score(sweep, i), 4);
        if (tested)
            print_number(out, number(json_object_get(one->result, "test"), sweep->measure), 4);
        if (one->result)
            fprintf(out, " %10.1f\n", number(one->result, "seconds"));
        else
            fprintf(out, " %10s\n", "-");
    }
}

static void print_best(FILE *out, const struct sweep *sweep)
{
    size_t best = sweep_best(sweep), left = 0, done = 0;
    for (size_t i = 0; i < sweep->n; i++) {
        done += sweep->items[i].state == COMBINATION_DONE;
        left += sweep->items[i].state < COMBINATION_DONE;
    }
    if (best < sweep->n)
        fprintf(out, "best by validation%s: %s, %s %.4f; %s/best/model.safetensors\n",
                left > 0 ? " so far" : "", sweep->items[best].name, sweep->measure,
                sweep_score(sweep, best), sweep->folder);
    else if (done > 0)
        fputs("no combination is named the best: there are no validation data\n", out);
}

void train_sweep_print(FILE *out, const struct sweep *sweep, bool json)
{
    struct json_out object;
    if (!json) {
        print_rows(out, sweep);
        print_best(out, sweep);
        return;
    }
    json_out_begin(&object, out);
    json_out_object(&object, NULL);
    sweep_put(sweep, &object);
    json_out_close_object(&object);
    json_out_end(&object);
}

/* It resumes if there is something in its folder: the sweep may have been stopped there. */
bool train_combination(const struct app *app, const struct train_args *given,
                       const struct args_result *operands, const struct sweep *sweep, size_t i,
                       struct err *err)
{
    struct train_args one = *given;
    struct app silent = *app;
    char *folder = sweep_folder(sweep, i), **settings = sweep_settings(sweep, i);
    bool ok = (folder && settings) || err_memory(err, "the sweep");
    if (ok && given->settings.n + sweep->n_axes > ARG_MAX_TEXTS)
        ok = err_set(err, ERR_USAGE, "--set and --sweep: more than %d in all", ARG_MAX_TEXTS);
    for (size_t a = 0; ok && a < sweep->n_axes; a++)
        one.settings.items[one.settings.n++] = settings[a];
    one.sweeps.n = 0;
    one.output = folder;
    one.resume = ok && !given->overwrite && file_exists(folder);
    silent.out = NULL;
    ok = ok && train_here(&silent, &one, operands, err);
    sweep_settings_free(settings, sweep->n_axes);
    free(folder);
    return ok;
}

struct work {
    const struct app *app;
    const struct train_args *given;
    const struct args_result *operands;
};

static bool train_one(void *arg, const struct sweep *sweep, size_t i, struct err *err)
{
    const struct work *work = arg;
    return train_combination(work->app, work->given, work->operands, sweep, i, err);
}

bool train_sweep(struct app *app, const struct train_args *given,
                 const struct args_result *operands, struct err *err)
{
    struct sweep sweep = { 0 };
    struct claim *claim = NULL;
    struct work work = { app, given, operands };
    struct train_start start = train_args_start(given, operands);
    bool ok = sweep_new(given->sweeps.items, given->sweeps.n, given->output, &sweep, err) &&
              sweep_check(&sweep, &start, &app->ctx, err) && file_make_folder(given->output, err) &&
              claim_take(given->output, &claim, err);
    if (ok) {
        ok = (!given->overwrite || sweep_clear(&sweep, err)) &&
             sweep_run(&sweep, train_one, &work, &app->ctx, err);
        train_sweep_print(app->out, &sweep, given->json);
    }
    claim_release(claim);
    sweep_free(&sweep);
    return ok;
}
