/* pipe_sets.c: the sets of activations of a pipeline's rank. A set is occupied by a micro-batch
 * from its forward pass, or with recomputation from the second one, until its gradients are made;
 * the program alone decides how many there are. Stages that take turns in a set share its memory.
 */
#include <stdlib.h>
#include "base/array.h"
#include "net/plan/tape.h"
#include "net/stages/pipe.h"

/* A set while the works are gone through. */
struct place {
    int owner; /* the micro-batch that occupies it; -1: none */
    int holds; /* whose activations are complete in it; -1: nobody's */
    bool used[2];
};

struct places {
    struct place *at;
    int n;
    int64_t room;
    int *of; /* [micros]: the set of each */
};

/* One that nobody occupies, best one that holds nothing. */
static bool choose(struct places *places, int *out, struct err *err)
{
    *out = -1;
    for (int i = 0; i < places->n; i++)
        if (places->at[i].owner < 0 && (*out < 0 || places->at[i].holds < 0)) {
            *out = i;
            if (places->at[i].holds < 0)
                return true;
        }
    if (*out >= 0)
        return true;
    if (!array_grow(&places->at, &places->room, places->n + 1, sizeof *places->at, "activations",
                    err))
        return false;
    places->at[places->n] = (struct place){ .owner = -1, .holds = -1 };
    *out = places->n++;
    return true;
}

static bool assign_work(struct pipeline *p, int i, struct places *places, struct err *err)
{
    const struct work *work = &p->works[i];
    struct pipe_work *out = &p->plan_of[i];
    bool last = work->kind == (p->options.program->split ? WORK_WEIGHTS : WORK_BACKWARD);
    bool there =
        work->kind != WORK_FORWARD && places->at[places->of[work->micro]].holds == work->micro;
    if (there)
        out->set = places->of[work->micro];
    else if (!choose(places, &out->set, err))
        return false;
    out->again = work->kind == WORK_BACKWARD && !there;
    struct place *place = &places->at[out->set];
    places->of[work->micro] = out->set;
    place->used[p->micros[work->micro].held] = true;
    bool stays = work->kind == WORK_FORWARD ? !p->options.recompute : !last;
    place->owner = stays ? work->micro : -1;
    place->holds = last ? -1 : work->micro;
    return true;
}

/* --- plans --- */

static bool make_plan(struct pipeline *p, struct pipe_set *set, int held, struct err *err)
{
    const struct pipe_stage *stage = &p->held[held];
    struct plan_options options = p->options.plan;
    value_id *keep = malloc(((size_t)stage->n_in + 1) * sizeof *keep);
    if (!keep)
        return err_memory(err, stage->graph->name);
    for (int k = 0; k < stage->n_in; k++)
        keep[k] = stage->graph->inputs[pipe_edge(p, stage->in[k])->input].value;
    options.keep = keep, options.n_keep = stage->n_in;
    options.input_gradients = false;
    options.split_backward = p->options.program->split;
    options.gradients = stage->gradients;
    options.arena = set->arena, options.arena_room = set->bytes;
    bool ok = plan_new(stage->graph, &options, &set->plans[held], err);
    free(keep);
    if (ok)
        plan_on_step(set->plans[held], pipe_progress, p);
    return ok;
}

/* The plans of a set take turns in memory that is large enough for each. */
static bool make_arena(struct pipeline *p, struct pipe_set *set, struct err *err)
{
    for (int h = 0; h < p->n_held; h++) {
        struct pipe_set alone = { 0 };
        if (!make_plan(p, &alone, h, err))
            return false;
        size_t bytes = plan_memory(alone.plans[h]).arena;
        plan_free(alone.plans[h]);
        set->bytes = bytes > set->bytes ? bytes : set->bytes;
    }
    set->arena = memory_reserve(set->bytes);
    return set->arena || err_memory(err, "activations");
}

static bool make_set(struct pipeline *p, struct pipe_set *set, const struct place *place,
                     struct err *err)
{
    if (place->used[0] && place->used[1] && !make_arena(p, set, err))
        return false;
    p->report.arenas += set->bytes;
    for (int h = 0; h < p->n_held; h++) {
        if (!place->used[h])
            continue;
        if (!make_plan(p, set, h, err))
            return false;
        struct plan_memory memory = plan_memory(set->plans[h]);
        p->report.arenas += memory.lent ? 0 : memory.arena;
    }
    return true;
}

bool pipe_sets_new(struct pipeline *p, struct err *err)
{
    struct places places = { .of = calloc((size_t)p->options.program->micros, sizeof(int)) };
    bool ok = places.of || err_memory(err, "activations");
    /* nobody's activations are there before its forward pass */
    for (int i = 0; ok && i < p->n_works; i++)
        ok = assign_work(p, i, &places, err);
    p->sets = ok ? calloc((size_t)places.n + 1, sizeof *p->sets) : NULL;
    ok = ok && (p->sets || err_memory(err, "activations"));
    for (p->n_sets = 0; ok && p->n_sets < places.n; p->n_sets++)
        ok = make_set(p, &p->sets[p->n_sets], &places.at[p->n_sets], err);
    p->report.sets = p->n_sets;
    free(places.at), free(places.of);
    return ok;
}

void pipe_sets_free(struct pipeline *p)
{
    for (int i = 0; i < p->n_sets; i++) {
        plan_free(p->sets[i].plans[0]);
        plan_free(p->sets[i].plans[1]);
        memory_return(p->sets[i].arena, p->sets[i].bytes);
    }
    free(p->sets);
}
