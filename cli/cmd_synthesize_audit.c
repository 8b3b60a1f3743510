/* cmd_synthesize_audit.c: microtome synthesize audit: can an attacker tell who was in the training
 * of a model? */
#include <math.h>
#include "audit/study.h"
#include "base/claim.h"
#include "base/file.h"
#include "cli/app.h"

struct audit_args {
    struct common_options common;
    const char *model, *output;
    struct arg_texts members, others, references;
    double epsilon, delta;
    int64_t samples, generated, seed;
    bool coins, json;
};

static void print_text(FILE *out, const struct study *study, const char *folder)
{
    fprintf(out, "%s\n\n%-40s %8s %17s %24s\n", study->sentence, "attack", "AUC", "(95 %)",
            "found at 1 % false alarms");
    for (int i = 0; i < study->n_attacks; i++) {
        const struct study_attack *a = &study->attacks[i];
        const struct share *found = &a->power.at[0].tpr;
        fprintf(out, "%-40.40s %8.3f   %.3f to %.3f %8.1f %% (%.1f to %.1f)%s\n", a->name,
                a->power.roc.auc, a->power.roc.delong_low, a->power.roc.delong_high,
                100 * found->value, 100 * found->low, 100 * found->high,
                a->control ? "  control" : "");
    }
    if (study->looked)
        fprintf(out,
                "copies: %.1f %% of %lld generated images; distance to training / to others, "
                "median: %.2f\n",
                100 * study->nearest.copies.value, (long long)study->nearest.samples,
                study->nearest.median);
    fprintf(out, "%s/audit.html has all of it, and what was not tried\n", folder);
}

static bool check(const struct audit_args *o, struct err *err)
{
    if ((o->members.n == 0) != (o->others.n == 0))
        return err_set(err, ERR_USAGE, "--members and --others belong together");
    if (o->coins && o->members.n == 0)
        return err_set(err, ERR_USAGE, "--coins is about --members and --others");
    return true;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct audit_args *o = options;
    (void)operands;
    struct claim *claim = NULL;
    struct study study = { 0 };
    const struct study_request request = {
        .model = o->model,
        .references = (char *const *)o->references.items,
        .n_references = o->references.n,
        .set = { .members = (char *const *)o->members.items,
                 .n_members = o->members.n,
                 .others = (char *const *)o->others.items,
                 .n_others = o->others.n,
                 .coins = o->coins,
                 .most = o->samples,
                 .seed = (uint64_t)o->seed },
        .epsilon = o->epsilon,
        .delta = o->delta,
        .generated = o->generated,
        .seed = (uint64_t)o->seed,
    };
    bool ok = check(o, err) && file_make_folder(o->output, err) &&
              claim_take(o->output, &claim, err) && study_run(&request, &app->ctx, &study, err) &&
              study_write(&study, o->model, o->output, err);
    if (ok && o->json)
        study_put_json(&study, o->model, app->out);
    else if (ok)
        print_text(app->out, &study, o->output);
    study_free(&study);
    claim_release(claim);
    return ok;
}

#define AT(field) offsetof(struct audit_args, field)

static const struct arg args[] = {
    { .name = "model",
      .type = ARG_TEXT,
      .offset = AT(model),
      .value = "DIR",
      .required = true,
      .help = "a trained model: a generator of patches or a classifier" },
    OUTPUT_ARG("folder for audit.html, audit.json, scores.csv and the ROC curves"),
    TEXTS_ARG("members", members, "PATCHES",
              "patches that it was trained on: a store, a folder or a tar file; may be given many "
              "times; default: members.csv of the model"),
    TEXTS_ARG("others", others, "PATCHES", "patches of the same kind that it was not trained on"),
    TEXTS_ARG("reference", references, "DIR",
              "a model trained alike on other patches, for RMIA; several for LiRA. Whom it was "
              "trained on is read from its members.csv; without one, it must know none of the "
              "patches"),
    FLAG_ARG("coins", coins,
             "a fair coin decided for every patch whether it became a member: also bound epsilon "
             "from below"),
    REAL_ARG("epsilon", epsilon, "E", "0", 0, 1e6,
             "promise to test; 0: as in the model's config.json"),
    REAL_ARG("delta", delta, "D", "1e-5", 0, 1, "delta of --epsilon"),
    INT_ARG("samples", samples, "N", "4000", 20, 1000000,
            "patches to ask about, drawn at random from members and others together"),
    INT_ARG("generated", generated, "N", "200", 0, 100000,
            "images that a generator makes, to look for copies"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same patches and images"),
    FLAG_ARG("json", json, "print audit.json"),
    COMMON_ARGS,
};

const struct command cmd_synthesize_audit = {
    .spec = { .name = "synthesize audit",
              .summary = "attack a model: can it be seen who was in its training?",
              .operands = "",
              .description =
                  "Membership inference on a generator (loss at fixed times and noise, SecMI, PIA) "
                  "or a classifier (loss threshold), with reference models also RMIA and LiRA, on "
                  "patches that were in the training and patches that were kept out by "
                  "privacy.hold_out. Controls that cannot know must fail: a regression on the "
                  "images alone, and the same network untrained. Says in plain words what was "
                  "found, what was not tried, and whether a promised epsilon is contradicted.",
              .example = "microtome synthesize train examples/idc-diffusion.yaml --set "
                         "data.train=train.tar --set privacy.hold_out=0.5 -o gen\n"
                         "microtome synthesize audit --model gen -o audit\n"
                         "microtome synthesize audit --model net --members in.tar --others out.tar "
                         "--reference other -o audit",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct audit_args),
    .run = run,
};
