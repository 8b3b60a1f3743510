/* cmd_synthesize_epsilon.c: microtome synthesize epsilon: what training with noise costs, or how
 * much noise an epsilon needs; as a table, JSON or plot. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/json.h"
#include "cli/app.h"
#include "plot/curves.h"
#include "privacy/accountant.h"

#define MOST_CURVES 6
#define POINTS 24 /* of a curve */

struct epsilon_args {
    struct common_options common;
    struct arg_texts sigmas, steps;
    double rate, delta, target;
    int accountant;
    const char *output;
    bool json;
};

struct answer {
    struct privacy_cost cost;
    double rdp, classic, prv; /* prv: NaN if out of its range */
};

static const char *const accountants[] = { "rdp", "rdp-classic", "prv", NULL };

/* The number that a text is, all of it. */
static bool read_number(const char *option, const char *text, double *out, struct err *err)
{
    char *end = NULL;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*out))
        return err_set(err, ERR_USAGE, "--%s '%s': not a number", option, text);
    return true;
}

static bool read_steps(const char *text, int64_t *out, struct err *err)
{
    double value = 0;
    if (!read_number("steps", text, &value, err))
        return false;
    if (value < 0 || value > 1e15 || value != floor(value))
        return err_set(err, ERR_USAGE, "--steps '%s': not a number of steps (0 or more)", text);
    *out = (int64_t)value;
    return true;
}

static bool answer_cost(struct app *app, struct answer *answer, struct err *err)
{
    struct err why = { 0 };
    if (!privacy_check(&answer->cost, err))
        return false;
    answer->rdp = privacy_epsilon_rdp(&answer->cost);
    answer->classic = privacy_epsilon_rdp_classic(&answer->cost);
    if (!privacy_epsilon_prv(&answer->cost, &answer->prv, &why)) {
        answer->prv = NAN;
        console_warn(app->ctx.console, "%s", why.text);
    }
    return true;
}

/* One answer for every sigma (or for the target) and every number of steps. */
static bool answer_all(struct app *app, const struct epsilon_args *o, struct answer *answers,
                       size_t *n, struct err *err)
{
    size_t n_sigmas = o->target > 0 ? 1 : o->sigmas.n;
    *n = 0;
    for (size_t s = 0; s < n_sigmas; s++)
        for (size_t t = 0; t < o->steps.n; t++) {
            struct answer *a = &answers[(*n)++];
            *a = (struct answer){ .cost = { .sigma = 1, .rate = o->rate, .delta = o->delta } };
            bool ok = read_steps(o->steps.items[t], &a->cost.steps, err);
            if (o->target > 0)
                ok = ok && privacy_sigma((enum privacy_accountant)o->accountant, o->target,
                                         &a->cost, &a->cost.sigma, err);
            else
                ok = ok && read_number("sigma", o->sigmas.items[s], &a->cost.sigma, err);
            if (!ok || !answer_cost(app, a, err))
                return false;
        }
    return true;
}

static void print_answer(struct json_out *json, const struct answer *a)
{
    json_out_real(json, "sigma", a->cost.sigma);
    json_out_real(json, "rate", a->cost.rate);
    json_out_int(json, "steps", a->cost.steps);
    json_out_real(json, "delta", a->cost.delta);
    json_out_real(json, "epsilon_rdp", a->rdp);
    json_out_real(json, "epsilon_rdp_classic", a->classic);
    json_out_real(json, "epsilon_prv", a->prv);
}

/* One answer is an object of its own; several are rows. */
static void print_json(FILE *out, const struct epsilon_args *o, const struct answer *answers,
                       size_t n)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    if (o->target > 0) {
        json_out_real(&json, "target", o->target);
        json_out_text(&json, "accountant", accountants[o->accountant]);
    }
    if (n == 1)
        print_answer(&json, &answers[0]);
    else
        json_out_array(&json, "rows");
    for (size_t i = 0; n > 1 && i < n; i++) {
        json_out_object_line(&json, NULL);
        print_answer(&json, &answers[i]);
        json_out_close_object(&json);
    }
    if (n > 1)
        json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static void print_table(FILE *out, const struct epsilon_args *o, const struct answer *answers,
                        size_t n)
{
    fprintf(out, "delta %g, every sample is in a batch with chance %g\n\n", o->delta, o->rate);
    fprintf(out, "%10s %10s %12s %12s %12s\n", "sigma", "steps", "epsilon PRV", "epsilon RDP",
            "RDP classic");
    for (size_t i = 0; i < n; i++) {
        const struct answer *a = &answers[i];
        fprintf(out, "%10.5g %10lld ", a->cost.sigma, (long long)a->cost.steps);
        if (isnan(a->prv))
            fprintf(out, "%12s", "-");
        else
            fprintf(out, "%12.4f", a->prv);
        fprintf(out, " %12.4f %12.4f\n", a->rdp, a->classic);
    }
    if (o->target > 0)
        fprintf(out, "\nsigma is the least noise that keeps epsilon %g by %s\n", o->target,
                accountants[o->accountant]);
    fputs(
        "\nPRV is the tight value, to 0.01 or a thousandth. RDP is an upper bound; classic is how\n"
        "older papers report it. If an observer gives a sample even odds to have been trained on,\n"
        "no look at the model makes the odds better than e^epsilon to 1, except with chance "
        "delta.\n"
        "These are for what is sampled: if patches are, this is no epsilon of a patient, who gave\n"
        "many patches and is protected far less.\n",
        out);
}

/* y [POINTS] of one curve: epsilon by one accountant after x [POINTS] steps. */
static bool trace(const struct privacy_cost *cost, enum privacy_accountant accountant,
                  const double *x, double *y, struct err *err)
{
    for (int i = 0; i < POINTS; i++) {
        struct privacy_cost at = *cost;
        at.steps = (int64_t)x[i];
        if (accountant == PRIVACY_PRV ? !privacy_epsilon_prv(&at, &y[i], err)
                                      : !privacy_epsilon(accountant, &at, &y[i], err))
            return false;
    }
    return true;
}

/* Epsilon over the steps: of one sigma by every accountant, of several by PRV. */
static bool draw(const char *path, const struct answer *answers, size_t n, struct err *err)
{
    static const char *const by[] = { "RDP", "RDP classic", "PRV" };
    double x[POINTS], y[MOST_CURVES][POINTS], top = 0;
    char names[MOST_CURVES][48];
    struct chart_curve curves[MOST_CURVES];
    int n_curves = 0;
    int64_t most = 1;
    for (size_t i = 0; i < n; i++)
        most = answers[i].cost.steps > most ? answers[i].cost.steps : most;
    for (int i = 0; i < POINTS; i++)
        x[i] = floor((double)most * i / (POINTS - 1));
    bool one = answers[0].cost.sigma == answers[n - 1].cost.sigma;
    for (size_t i = 0; (one ? i < 3 : i < n) && n_curves < MOST_CURVES; i++) {
        const struct answer *a = &answers[one ? 0 : i];
        if (!one && i > 0 && a->cost.sigma == a[-1].cost.sigma)
            continue;
        if (!trace(&a->cost, one ? (enum privacy_accountant)i : PRIVACY_PRV, x, y[n_curves], err))
            return false;
        snprintf(names[n_curves], sizeof names[0], one ? "sigma %.4g, %s" : "sigma %.4g",
                 a->cost.sigma, by[one ? i : 0]);
        top = fmax(top, y[n_curves][POINTS - 1]);
        curves[n_curves] =
            (struct chart_curve){ names[n_curves], x, y[n_curves], POINTS, .dashed = one && i < 2 };
        n_curves++;
    }
    const struct chart chart = { .title = "privacy spent by training",
                                 .x_label = "steps",
                                 .y_label = "epsilon of one sample",
                                 .curves = curves,
                                 .n_curves = n_curves,
                                 .x_high = (double)most,
                                 .y_high = top > 0 ? top * 1.05 : 1 };
    bool png = strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".png") == 0;
    return curves_chart(png ? NULL : path, png ? path : NULL, &chart, err);
}

static bool check(const struct epsilon_args *o, struct err *err)
{
    if (o->target <= 0 && o->sigmas.n == 0)
        return err_set(err, ERR_USAGE,
                       "what is asked? pass --sigma for its epsilon, or --target for the sigma of "
                       "an epsilon");
    if (o->steps.n == 0)
        return err_set(err, ERR_USAGE, "--steps is missing");
    if (o->output) {
        size_t length = strlen(o->output);
        const char *end = length > 4 ? o->output + length - 4 : "";
        if (strcmp(end, ".svg") != 0 && strcmp(end, ".png") != 0)
            return err_set(err, ERR_USAGE, "%s: a plot is a file that ends in .svg or .png",
                           o->output);
    }
    return true;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct epsilon_args *o = options;
    (void)operands;
    size_t n = 0, room = (o->sigmas.n + 1) * (o->steps.n + 1);
    if (!check(o, err))
        return false;
    struct answer *answers = malloc(room * sizeof *answers);
    if (!answers)
        return err_memory(err, "the table");
    bool ok = answer_all(app, o, answers, &n, err);
    ok = ok && (!o->output || draw(o->output, answers, n, err));
    if (ok && o->json)
        print_json(app->out, o, answers, n);
    else if (ok)
        print_table(app->out, o, answers, n);
    free(answers);
    return ok;
}

#define AT(field) offsetof(struct epsilon_args, field)

static const struct arg args[] = {
    TEXTS_ARG("sigma", sigmas, "X",
              "noise multiplier: standard deviation of the noise over the clip norm; may be given "
              "many times"),
    { .name = "target",
      .type = ARG_REAL,
      .offset = AT(target),
      .value = "EPSILON",
      .min = 1e-3,
      .max = 1e6,
      .excludes = "sigma",
      .help = "find the least sigma for this epsilon instead" },
    CHOICE_ARG("accountant", accountant, "NAME", "rdp", accountants,
               "accountant that --target must satisfy: rdp, rdp-classic or prv, which is tighter"),
    { .name = "rate",
      .type = ARG_REAL,
      .offset = AT(rate),
      .value = "Q",
      .min = 1e-12,
      .max = 1,
      .required = true,
      .help = "chance of every sample to be in a batch: expected batch / training samples" },
    TEXTS_ARG("steps", steps, "N", "training steps; may be given many times"),
    { .name = "delta",
      .type = ARG_REAL,
      .offset = AT(delta),
      .value = "D",
      .initial = "1e-5",
      .min = 1e-300,
      .max = 0.5,
      .help = "chance that epsilon does not hold; less than 1 / training samples" },
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "FILE",
      .help = "also draw epsilon over the steps, as .svg or .png" },
    FLAG_ARG("json", json, "print the result as JSON"),
    COMMON_ARGS,
};

const struct command cmd_synthesize_epsilon = {
    .spec = { .name = "synthesize epsilon",
              .summary = "what private training costs: noise to epsilon, epsilon to noise",
              .operands = "",
              .description =
                  "Computes the privacy guarantee (epsilon, delta) of training by DP-SGD with "
                  "Poisson sampling, by two accountants: Renyi divergence (RDP), and numerical "
                  "composition of the privacy loss (PRV), which is tight. Epsilon holds for what "
                  "is "
                  "sampled, patches or patients; that of a patch says little about a patient.",
              .example =
                  "microtome synthesize epsilon --sigma 1.1 --rate 0.00426666667 --steps 14062\n"
                  "microtome synthesize epsilon --target 8 --rate 0.02 --steps 2000 --delta 1e-6\n"
                  "microtome synthesize epsilon --sigma 0.8 --sigma 1 --sigma 1.5 --rate 0.01 "
                  "--steps 5000 -o epsilon.svg",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct epsilon_args),
    .run = run,
};
