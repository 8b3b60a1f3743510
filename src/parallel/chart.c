/* chart.c: a choice of advice, simulated again -> its Gantt chart. */
#include <stdio.h>
#include <stdlib.h>
#include "parallel/advice.h"
#include "plot/gantt.h"

/* In the order of span_kind. */
static const char *const kinds[] = { "forward", "forward again",    "backward",
                                     "weights", "sum of gradients", "update" };
#define KINDS ((int)(sizeof kinds / sizeof *kinds))

static bool draw(const struct advice_request *request, const struct advice_choice *choice,
                 const struct program *program, const struct simulation *simulation,
                 struct gantt_bar *bars, const char *const *paths, struct err *err)
{
    char names[STAGES_MOST][16], title[200], subtitle[200], words[160];
    const char *rows[STAGES_MOST];
    double unit = simulation->seconds < 1 ? 1e-3 : 1;
    for (int r = 0; r < program->stages; r++) {
        snprintf(names[r], sizeof names[r], "rank %d", r);
        rows[r] = names[r];
    }
    for (int i = 0; i < simulation->n_spans; i++) {
        const struct sim_span *span = &simulation->spans[i];
        bars[i] = (struct gantt_bar){ .row = span->rank,
                                      .kind = (int)span->kind,
                                      .begin = span->begin_s / unit,
                                      .end = span->end_s / unit,
                                      .number = span->micro,
                                      .below = span->kind == SPAN_SUM,
                                      .marked = program->two_way && span->micro % 2 == 1 };
    }
    advice_words(choice, words, sizeof words);
    snprintf(title, sizeof title, "%s: %s", request->graph->name, words);
    snprintf(subtitle, sizeof subtitle,
             "simulated: %.4g s a step of %lld %s, ranks work %.0f %% of it%s", simulation->seconds,
             (long long)request->step_images, advice_samples(request), 100 * simulation->busy,
             choice->heads > 1  ? "; one rank is shown, all do the same"
             : choice->data > 1 ? "; one replica is shown, all do the same"
                                : "");
    struct gantt gantt = { .title = title,
                           .subtitle = subtitle,
                           .x_label = unit < 1 ? "ms (in boxes: micro-batches)"
                                               : "s (in boxes: micro-batches)",
                           .rows = rows,
                           .n_rows = program->stages,
                           .kinds = kinds,
                           .n_kinds = KINDS,
                           .idle = "waiting",
                           .marked = program->two_way ? "second copy of the network" : NULL,
                           .bars = bars,
                           .n_bars = simulation->n_spans,
                           .end = simulation->seconds / unit };
    return gantt_write(paths[0], paths[1], &gantt, err);
}

bool advice_chart(const struct advice_request *request, const struct advice_choice *choice,
                  const char *svg_path, const char *png_path, struct err *err)
{
    struct program program = { 0 };
    struct simulation simulation = { 0 };
    if (!advice_simulate(request, choice, &program, &simulation, err))
        return false;
    struct gantt_bar *bars = calloc((size_t)simulation.n_spans + 1, sizeof *bars);
    const char *paths[] = { svg_path, png_path };
    bool ok = bars ? draw(request, choice, &program, &simulation, bars, paths, err)
                   : err_memory(err, "a chart");
    free(bars);
    simulation_free(&simulation);
    program_free(&program);
    return ok;
}
