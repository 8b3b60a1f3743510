/* study.c: see study.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "audit/blind.h"
#include "audit/study.h"
#include "audit/target.h"
#include "base/json_file.h"
#include "base/text.h"

#define FOLDS 5

struct working {
    const struct study_request *request;
    const struct ctx *ctx;
    struct study *study;
    struct target target;
    struct signal signals[TARGET_SIGNALS];
    struct signal references[STUDY_REFERENCES];
    int n_references, n_neither; /* references; those that saw no sample of the set */
};

void study_free(struct study *study)
{
    for (int i = 0; i < study->n_attacks; i++) {
        free(study->attacks[i].scores);
        power_free(&study->attacks[i].power);
    }
    audit_set_free(&study->set);
    *study = (struct study){ 0 };
}

static void __attribute__((format(printf, 2, 3)))
leave_out(struct study *study, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(study->untried[study->n_untried++], STUDY_TEXT, format, list);
    va_end(list);
}

/* What config.json of the model promises, unless the request says it. */
static bool find_promise(const struct study_request *request, struct study *study, struct err *err)
{
    study->promise = (struct promise){ INFINITY, 0 };
    if (request->epsilon > 0) {
        study->promise = (struct promise){ request->epsilon, request->delta };
        return true;
    }
    char *path = text_format("%s/config.json", request->model);
    if (!path)
        return err_memory(err, request->model);
    json_t *json = json_file_read(path, 1 << 20, NULL);
    const json_t *privacy = json_object_get(json_object_get(json, "microtome"), "privacy");
    double epsilon = json_number_value(json_object_get(privacy, "epsilon"));
    const char *unit = json_string_value(json_object_get(privacy, "unit"));
    if (epsilon > 0)
        study->promise =
            (struct promise){ epsilon, json_number_value(json_object_get(privacy, "delta")) };
    snprintf(study->unit, sizeof study->unit, "%s", unit && epsilon > 0 ? unit : "");
    json_decref(json);
    free(path);
    return true;
}

/* A new attack, and memory for its scores; NULL with an error. */
static struct study_attack *new_attack(struct study *study, bool control, const char *name,
                                       const char *what, struct err *err)
{
    if (study->n_attacks == STUDY_ATTACKS) {
        err_set(err, ERR_USAGE, "more than %d attacks; name fewer references", STUDY_ATTACKS);
        return NULL;
    }
    struct study_attack *attack = &study->attacks[study->n_attacks];
    attack->scores = calloc((size_t)study->set.n + 1, sizeof *attack->scores);
    if (!attack->scores) {
        err_memory(err, "the scores");
        return NULL;
    }
    attack->control = control;
    snprintf(attack->name, sizeof attack->name, "%s", name);
    snprintf(attack->what, sizeof attack->what, "%s", what);
    study->n_attacks++;
    return attack;
}

/* From the scores. A promise to a patient says nothing of single patches that can be used here, but
 * holds for each of them too. Controls have no promise to break. */
static bool judge_scores(struct working *w, struct study_attack *attack, struct err *err)
{
    struct promise none = { INFINITY, 0 };
    return power_of(attack->scores, w->study->set.member, w->study->set.n,
                    attack->control ? none : w->study->promise,
                    w->study->set.coins && !attack->control, w->ctx, &attack->power, err);
}

static bool attack_target(struct working *w, struct err *err)
{
    const struct audited_kind *kind = w->target.kind;
    if (!target_measure(&w->target, &w->study->set, w->ctx, w->signals, err))
        return false;
    for (int s = 0; s < kind->n_signals; s++) {
        struct study_attack *a =
            new_attack(w->study, false, kind->signals[s].name, kind->signals[s].what, err);
        if (!a)
            return false;
        attack_loss(&w->signals[s], w->study->set.n, a->scores);
        if (!judge_scores(w, a, err))
            return false;
    }
    return true;
}

/* --- controls --- */

static bool control_blind(struct working *w, struct err *err)
{
    const struct audit_set *set = &w->study->set;
    struct study_attack *a =
        new_attack(w->study, true, "blind baseline",
                   "a regression on colours and edges of the images; it never sees the model", err);
    double *features = calloc((size_t)(set->n * BLIND_FEATURES), sizeof *features);
    bool ok = a && (features || err_memory(err, "the blind baseline"));
    for (int64_t i = 0; ok && i < set->n; i++)
        blind_features(&set->images[i], features + i * BLIND_FEATURES);
    ok = ok && blind_scores(features, set->n, BLIND_FEATURES, set->member, FOLDS, a->scores, err);
    free(features);
    return ok && judge_scores(w, a, err);
}

static bool control_untrained(struct working *w, struct err *err)
{
    struct target untrained = { 0 };
    struct signal signals[TARGET_SIGNALS] = { { 0 } };
    const struct audit_set *set = &w->study->set;
    bool ok = target_untrained(w->request->model, w->request->seed, w->ctx, &untrained, err) &&
              target_measure(&untrained, set, w->ctx, signals, err);
    struct study_attack *a = NULL;
    if (ok)
        a = new_attack(w->study, true, "untrained model",
                       "the same network with random weights: trained on neither", err);
    ok = ok && a;
    if (ok)
        attack_loss(&signals[0], set->n, a->scores);
    for (int s = 0; s < TARGET_SIGNALS; s++)
        signal_free(&signals[s]);
    target_close(&untrained);
    return ok && judge_scores(w, a, err);
}

/* --- references --- */

/* Signals of a reference, and whom it was trained on. One that saw nobody is a control as well. */
static bool add_reference(struct working *w, const char *path, struct err *err)
{
    struct target target = { 0 };
    struct signal signals[TARGET_SIGNALS] = { { 0 } };
    const struct audit_set *set = &w->study->set;
    bool listed = false, saw = false;
    bool *trained_on = calloc((size_t)set->n + 1, sizeof *trained_on);
    bool ok = trained_on || err_memory(err, "the references");
    ok = ok && target_open(path, w->ctx, &target, err);
    if (ok && target.kind != w->target.kind)
        ok = err_set(err, ERR_USAGE, "%s: a %s, but the model is a %s", path, target.kind->name,
                     w->target.kind->name);
    ok = ok && audit_set_trained_on(set, path, trained_on, &listed, err) &&
         target_measure(&target, set, w->ctx, signals, err);
    for (int64_t i = 0; ok && i < set->n; i++)
        saw = saw || trained_on[i];
    if (ok && !saw && w->n_neither < 4) {
        char name[80];
        snprintf(name, sizeof name, "reference %.60s", path);
        struct study_attack *a = new_attack(w->study, true, name,
                                            "the loss of a model that was trained on neither", err);
        ok = a != NULL;
        if (ok)
            attack_loss(&signals[0], set->n, a->scores);
        ok = ok && judge_scores(w, a, err);
    }
    if (ok) {
        signals[0].trained_on = saw ? trained_on : NULL;
        trained_on = saw ? NULL : trained_on;
        w->references[w->n_references++] = signals[0];
        w->n_neither += !saw;
        signals[0] = (struct signal){ 0 };
    }
    for (int s = 0; s < TARGET_SIGNALS; s++)
        signal_free(&signals[s]);
    free(trained_on);
    target_close(&target);
    return ok;
}

static bool attack_with_references(struct working *w, struct err *err)
{
    int64_t n = w->study->set.n;
    struct study_attack *a =
        new_attack(w->study, false, "RMIA",
                   "likelihood against reference models (Zarifzadeh et al. 2024)", err);
    if (!a)
        return false;
    attack_rmia(&w->signals[0], w->references, w->n_references, w->target.kind->likelihood, n,
                a->scores);
    if (!judge_scores(w, a, err))
        return false;
    struct err why = { 0 };
    bool online = false;
    a = new_attack(w->study, false, "LiRA", "", err);
    if (!a)
        return false;
    if (!attack_lira(&w->signals[0], w->references, w->n_references, n, a->scores, &online, &why)) {
        free(a->scores);
        w->study->n_attacks--;
        leave_out(w->study, "LiRA: it needs at least two reference models that did not see a "
                            "patch; pass --reference more than once.");
        return true;
    }
    snprintf(a->what, sizeof a->what, "Gaussians of %d reference models, %s (Carlini et al. 2022)",
             w->n_references, online ? "online" : "offline");
    return judge_scores(w, a, err);
}

static bool ask_references(struct working *w, struct err *err)
{
    if (w->request->n_references == 0) {
        leave_out(w->study, "RMIA and LiRA: they need models that were trained alike on other "
                            "patches of the same kind; pass --reference. They are the stronger "
                            "attacks.");
        return true;
    }
    for (size_t r = 0; r < w->request->n_references; r++)
        if (!add_reference(w, w->request->references[r], err))
            return false;
    return attack_with_references(w, err);
}

/* --- copies --- */

static bool look_at_neighbours(struct working *w, struct err *err)
{
    struct study *study = w->study;
    const struct audit_set *set = &study->set;
    int64_t n = w->request->generated, members = 0, others = 0;
    if (!w->target.kind->make || n == 0) {
        if (w->target.kind->make)
            leave_out(study, "Copies among generated images: none were made.");
        return true;
    }
    struct image *made = calloc((size_t)n, sizeof *made);
    float *views = calloc((size_t)((n + set->n) * NEAREST_SIZE), sizeof *views);
    bool ok = (made && views) || err_memory(err, "the neighbours");
    ok = ok && w->target.kind->make(&w->target, n, w->request->seed, w->ctx, made, err);
    for (int64_t i = 0; ok && i < n; i++)
        ok = nearest_view(&made[i], views + i * NEAREST_SIZE, err);
    float *trained = views ? views + n * NEAREST_SIZE : NULL;
    float *kept = views ? trained + set->n_members * NEAREST_SIZE : NULL;
    for (int64_t i = 0; ok && i < set->n; i++)
        ok = nearest_view(&set->images[i],
                          set->member[i] ? trained + members++ * NEAREST_SIZE
                                         : kept + others++ * NEAREST_SIZE,
                          err);
    ok = ok && nearest_audit(views, n, trained, members, kept, others, w->request->seed, w->ctx,
                             NULL, &study->nearest, err);
    study->looked = ok;
    for (int64_t i = 0; made && i < n; i++)
        image_free(&made[i]);
    free(made);
    free(views);
    return ok;
}

static void list_untried(struct study *study)
{
    if (!study->set.coins)
        leave_out(study, "The one-run lower bound of epsilon: it needs members drawn by fair coins "
                         "(privacy.hold_out=0.5, or --coins).");
    leave_out(study, "Attacks that train many models of their own, that change the training data, "
                     "or that see gradients or several states of one training.");
    if (!study->set.same_patients)
        leave_out(study, "Whether a patient was in the training: members and others come from "
                         "different patients here, which the controls must rule out as the cause.");
    else
        leave_out(study, "Whether any patch of a patient was in the training: this asks for single "
                         "patches. A patient with many patches is easier to find.");
}

bool study_run(const struct study_request *request, const struct ctx *ctx, struct study *out,
               struct err *err)
{
    *out = (struct study){ 0 };
    struct working w = { .request = request, .ctx = ctx, .study = out };
    struct set_request set = request->set;
    set.folder = request->model;
    bool ok = request->n_references <= STUDY_REFERENCES ||
              err_set(err, ERR_USAGE, "more than %d references", STUDY_REFERENCES);
    ok = ok && target_open(request->model, ctx, &w.target, err) &&
         find_promise(request, out, err) &&
         audit_set_open(&set, w.target.config, w.target.kind->labels, ctx, &out->set, err);
    ok = ok && attack_target(&w, err) && ask_references(&w, err) && control_blind(&w, err) &&
         control_untrained(&w, err) && look_at_neighbours(&w, err);
    if (ok) {
        out->kind = w.target.kind->name;
        list_untried(out);
        study_judge(out);
    }
    for (int s = 0; s < TARGET_SIGNALS; s++)
        signal_free(&w.signals[s]);
    for (int r = 0; r < w.n_references; r++)
        signal_free(&w.references[r]);
    target_close(&w.target);
    return ok;
}
