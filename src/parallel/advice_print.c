/* advice_print.c: advice in words, as a table and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "parallel/advice.h"

#define MB 1e6

const char *advice_samples(const struct advice_request *request)
{
    return request->texts ? "texts" : "patches";
}

void advice_words(const struct advice_choice *choice, char *text, size_t size)
{
    char how[64] = "";
    if (choice->heads > 1)
        snprintf(how, sizeof how, " x heads %d", choice->heads);
    else if (choice->stages > 1)
        snprintf(how, sizeof how, " x stages %d, %s%s", choice->stages,
                 program_names[choice->schedule], choice->recompute ? " with recomputation" : "");
    snprintf(text, size, "data %d%s, %lld micro-batch%s of %lld", choice->data, how,
             (long long)choice->micros, choice->micros == 1 ? "" : "es",
             (long long)choice->micro_batch);
}

bool advice_fits(const struct advice_request *request, const struct advice *advice, struct err *err)
{
    if (advice->n_fit > 0)
        return true;
    char words[160];
    advice_words(&advice->choices[0], words, sizeof words);
    return err_set(err, ERR_USAGE,
                   "%s: nothing fits into %.0f MB a rank on %d ranks; the least is %.0f MB (%s); "
                   "allow that much, use more ranks or smaller micro-batches (train.batch, "
                   "parallel.micro_batch)",
                   request->graph->name, (double)request->memory / MB, request->ranks,
                   ceil((double)advice->choices[0].peak / MB), words);
}

/* The fastest of those that fit on another grid than the first, or with another schedule; NULL:
 * none. */
static const struct advice_choice *rival(const struct advice *advice)
{
    const struct advice_choice *first = &advice->choices[0];
    for (int i = 1; i < advice->n_fit; i++) {
        const struct advice_choice *other = &advice->choices[i];
        if (other->schedule != first->schedule || other->stages != first->stages ||
            other->heads != first->heads || other->recompute != first->recompute)
            return other;
    }
    return NULL;
}

static bool is_whole(const struct advice_choice *choice)
{
    return choice->stages == 1 && choice->heads == 1;
}

/* The whole network on every rank, as it takes the least. */
static const struct advice_choice *least_whole(const struct advice *advice)
{
    const struct advice_choice *least = NULL;
    for (int i = 0; i < advice->n; i++)
        if (is_whole(&advice->choices[i]) && (!least || advice->choices[i].peak < least->peak))
            least = &advice->choices[i];
    return least;
}

/* The first of the choices with divided heads, or of those without stages and heads; NULL: none. */
static const struct advice_choice *first_of(const struct advice *advice, bool heads)
{
    for (int i = 0; i < advice->n; i++) {
        const struct advice_choice *choice = &advice->choices[i];
        if (heads ? choice->heads > 1 : is_whole(choice))
            return choice;
    }
    return NULL;
}

void advice_heads_words(const struct advice *advice, char *text, size_t size)
{
    const struct advice_choice *first = &advice->choices[0];
    const struct advice_choice *other = first_of(advice, first->heads == 1);
    text[0] = 0;
    if (!other || !first_of(advice, true))
        return;
    char grid[32] = "the whole network on every rank";
    if (other->heads > 1)
        snprintf(grid, sizeof grid, "data %d x heads %d", other->data, other->heads);
    if (!other->fits)
        snprintf(text, size, "%s needs %.0f MB and does not fit", grid, (double)other->peak / MB);
    else if (other->heads > 1)
        snprintf(text, size,
                 "%s would take %.2f times as long, %.0f %% of it for sums within layers", grid,
                 other->seconds / first->seconds, 100 * other->sums);
    else
        snprintf(text, size, "%s would take %.2f times as long", grid,
                 other->seconds / first->seconds);
}

/* What most of the time of a step is for, or memory. */
static const char *limit_of(const struct advice_choice *choice)
{
    double rest = 1 - choice->busy - choice->sums;
    if (!choice->fits)
        return "memory";
    if (choice->busy >= choice->sums && choice->busy >= rest)
        return "computing";
    if (choice->sums >= rest)
        return "sums in layers";
    return choice->stages > 1 ? "waiting" : "sums of gradients";
}

static void print_why(const struct advice_request *request, const struct advice *advice,
                      FILE *stream)
{
    const struct advice_choice *first = &advice->choices[0], *other = rival(advice);
    const struct advice_choice *alone = least_whole(advice);
    char words[160];
    advice_words(first, words, sizeof words);
    fprintf(stream, "chosen: %s\n", words);
    if (request->ranks == 1) {
        fprintf(stream, "why: one rank does everything; --ranks N plans for N of them\n");
        return;
    }
    fprintf(stream, "why: the fastest of %d ways", advice->n);
    if (request->memory > 0)
        fprintf(stream, ", %d of which fit into %.0f MB a rank", advice->n_fit,
                (double)request->memory / MB);
    if (other) {
        advice_words(other, words, sizeof words);
        fprintf(stream, "; the next other one (%s) takes %.1f %% longer", words,
                100 * (other->seconds / first->seconds - 1));
    }
    fputc('\n', stream);
    if (first->stages > 1 && alone && !alone->fits)
        fprintf(stream, "the whole network on every rank needs %.0f MB and does not fit\n",
                (double)alone->peak / MB);
    if (is_whole(first))
        fprintf(stream, "the whole network fits on every rank: replicas never wait for a stage\n");
    advice_heads_words(advice, words, sizeof words);
    if (words[0])
        fprintf(stream, "heads: %s\n", words);
    if (first->heads > 1)
        fprintf(
            stream,
            "the first rank has the whole network and its optimizer once more while it saves\n");
}

void advice_print(const struct advice_request *request, const struct advice *advice, int most,
                  FILE *stream)
{
    fprintf(stream, "%-5s %-6s %-5s %-8s %-9s %-7s %-6s %10s %10s %6s %10s  %s\n", "data", "stages",
            "heads", "schedule", "recompute", "micros", "each", "s/step",
            request->texts ? "texts/s" : "patches/s", "busy", "MB/rank", "limited by");
    for (int i = 0; i < advice->n && i < most; i++) {
        const struct advice_choice *choice = &advice->choices[i];
        fprintf(stream,
                "%-5d %-6d %-5d %-8s %-9s %-7lld %-6lld %10.4g %10.4g %4.0f %% %10.0f  %s\n",
                choice->data, choice->stages, choice->heads,
                choice->stages > 1 ? program_names[choice->schedule] : "-",
                choice->recompute ? "yes" : "no", (long long)choice->micros,
                (long long)choice->micro_batch, choice->seconds,
                (double)request->step_images / choice->seconds, 100 * choice->busy,
                (double)choice->peak / MB, limit_of(choice));
    }
    if (advice->n > most)
        fprintf(stream, "and %d more\n", advice->n - most);
    if (advice->n_fit > 0)
        print_why(request, advice, stream);
}

static void put_choice(const struct advice_request *request, const struct advice_choice *choice,
                       struct json_out *json)
{
    json_out_object(json, NULL);
    json_out_int(json, "data", choice->data);
    json_out_int(json, "stages", choice->stages);
    json_out_int(json, "heads", choice->heads);
    json_out_text(json, "schedule", choice->stages > 1 ? program_names[choice->schedule] : NULL);
    json_out_bool(json, "recompute", choice->recompute);
    json_out_int(json, "micro_batch", choice->micro_batch);
    json_out_int(json, "micro_batches", choice->micros);
    json_out_real(json, "step_s", choice->seconds);
    json_out_real(json, "samples_per_s", (double)request->step_images / choice->seconds);
    json_out_real(json, "busy", choice->busy);
    json_out_real(json, "sums_in_layers", choice->sums);
    json_out_text(json, "limited_by", limit_of(choice));
    json_out_int(json, "rank_bytes", (int64_t)choice->peak);
    json_out_bool(json, "fits", choice->fits);
    json_out_array_line(json, "last_layers");
    for (int s = 1; s < choice->stages; s++) {
        const struct node *node = &request->graph->nodes[choice->begin[s] - 1];
        json_out_text(json, NULL, request->graph->values[node->output].name);
    }
    json_out_close_array(json);
    json_out_close_object(json);
}

void advice_json(const struct advice_request *request, const struct advice *advice,
                 struct json_out *json)
{
    json_out_text(json, "network", request->graph->name);
    json_out_int(json, "ranks", request->ranks);
    json_out_int(json, "step_samples", request->step_images);
    json_out_int(json, "memory_bytes", (int64_t)request->memory);
    json_out_int(json, "besides_bytes", (int64_t)request->besides);
    json_out_int(json, "parameters", graph_parameter_count(request->graph));
    json_out_int(json, "optimizer_arrays", request->optimizer_arrays);
    json_out_real(json, "latency_s", request->wire.latency_s);
    json_out_real(json, "bytes_per_s", request->wire.bytes_per_s);
    json_out_int(json, "ranks_a_machine", request->ranks_a_machine);
    json_out_int(json, "cores_a_machine", request->cores);
    json_out_int(json, "threads_a_rank", request->threads);
    double forward_s = 0, backward_s = 0;
    for (int32_t i = 0; i < request->graph->n_nodes; i++) {
        forward_s += request->costs[i].forward_s;
        backward_s += request->costs[i].backward_s;
    }
    json_out_real(json, "forward_s", forward_s);
    json_out_real(json, "backward_s", backward_s);
    json_out_int(json, "fit", advice->n_fit);
    json_out_array(json, "choices");
    for (int i = 0; i < advice->n; i++)
        put_choice(request, &advice->choices[i], json);
    json_out_close_array(json);
}
