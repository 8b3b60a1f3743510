/* parallel_print.c: a plan of ranks in words, as JSON and as files. */
#include <stdlib.h>
#include "base/file.h"
#include "base/text.h"
#include "train/parallel_plan.h"

#define SHOWN 12 /* choices in the table */

static void sum_costs(const struct parallel_plan *plan, double *forward_s, double *backward_s)
{
    *forward_s = *backward_s = 0;
    for (int32_t i = 0; i < plan->graph->n_nodes; i++) {
        *forward_s += plan->costs[i].forward_s;
        *backward_s += plan->costs[i].backward_s;
    }
}

/* "1.23 s" or "1.23 ms" */
static void put_time(double seconds, char text[32])
{
    snprintf(text, 32, seconds < 1 ? "%.3g ms" : "%.4g s", seconds < 1 ? 1e3 * seconds : seconds);
}

static void print_terms(const struct parallel_plan *plan, FILE *stream)
{
    const struct parallel_place *place = &plan->place;
    const struct advice_request *request = &plan->request;
    double forward_s, backward_s;
    char forward[32], backward[32];
    sum_costs(plan, &forward_s, &backward_s);
    put_time(forward_s, forward);
    put_time(backward_s, backward);
    bool texts = plan->tokens > 0;
    fprintf(stream,
            "network     %s at %lld %s, %.2f M parameters; %s takes %s forward, %s back "
            "(measured",
            plan->graph->name, (long long)(texts ? plan->tokens : plan->input_px),
            texts ? "tokens" : "px", (double)graph_parameter_count(plan->graph) / 1e6,
            texts ? "a text" : "an image", forward, backward);
    if (plan->measured_px != plan->input_px)
        fprintf(stream, " at %lld px", (long long)plan->measured_px);
    fprintf(stream, ")\nranks       %d, %d on a machine with %d processor%s, %d thread%s each\n",
            place->ranks, place->ranks_a_machine, place->cores, place->cores == 1 ? "" : "s",
            place->threads, place->threads == 1 ? "" : "s");
    fprintf(stream, "connection  %.3g us, %.3g GB/s (%s)\n", 1e6 * place->wire.latency_s,
            place->wire.bytes_per_s / 1e9, place->wire_from);
    if (place->memory > 0)
        fprintf(stream, "memory      %.0f MB a rank (%s)\n", (double)place->memory / 1e6,
                place->memory_from);
    fprintf(stream, "a step      %lld %s", (long long)request->step_images,
            advice_samples(request));
    if (request->micro_batch > 0)
        fprintf(stream, " in micro-batches of %lld%s", (long long)request->micro_batch,
                plan->norm_fixes ? ", which batch norm sees" : "");
    fputs("\n\n", stream);
}

void parallel_plan_print(const struct parallel_plan *plan, FILE *stream)
{
    const struct advice_choice *first = &plan->advice.choices[0];
    print_terms(plan, stream);
    advice_print(&plan->request, &plan->advice, SHOWN, stream);
    if (plan->advice.n_fit == 0)
        return;
    fprintf(stream, "config:\n  parallel: {data: %d, stages: %d", first->data, first->stages);
    if (first->heads > 1)
        fprintf(stream, ", heads: %d", first->heads);
    if (first->stages > 1)
        fprintf(stream, ", schedule: %s, recompute: %s, micro_batch: %lld",
                program_names[first->schedule], first->recompute ? "true" : "false",
                (long long)first->micro_batch);
    fprintf(stream, "}\n  train: {batch: %lld, accumulate: %lld}\n", (long long)first->micro_batch,
            (long long)first->micros);
}

void parallel_plan_json(const struct parallel_plan *plan, FILE *stream)
{
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_int(&json, "input_px", plan->input_px);
    json_out_int(&json, "tokens", plan->tokens);
    json_out_int(&json, "measured_px", plan->measured_px);
    json_out_text(&json, "connection", plan->place.wire_from);
    json_out_text(&json, "memory", plan->place.memory_from);
    json_out_bool(&json, "batch_norm_fixes_micro_batch", plan->norm_fixes);
    advice_json(&plan->request, &plan->advice, &json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool write_json(const struct parallel_plan *plan, const char *path, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    parallel_plan_json(plan, out.stream);
    return file_out_commit(&out, err);
}

bool parallel_plan_write(const struct parallel_plan *plan, const char *folder, struct err *err)
{
    char *json = text_format("%s/parallel.json", folder);
    char *svg = text_format("%s/parallel.svg", folder),
         *png = text_format("%s/parallel.png", folder);
    bool ok = (json && svg && png) || err_memory(err, "a plan of ranks");
    ok = ok && file_make_folder(folder, err) && write_json(plan, json, err) &&
         advice_chart(&plan->request, &plan->advice.choices[0], svg, png, err);
    free(json), free(svg), free(png);
    return ok;
}
