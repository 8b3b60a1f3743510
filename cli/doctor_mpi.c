/* doctor_mpi.c: microtome doctor --mpi: how fast ranks reach each other. */
#include "base/json.h"
#include "base/version.h"
#include "cli/doctor.h"
#include "dist/launch.h"
#include "doctor/connection.h"

#define FIGURE_S 0.04

static const char *host_name(const struct connection_report *report, int rank)
{
    return report->hosts[report->host_of[rank]];
}

static void print_hosts(FILE *out, const struct connection_report *report)
{
    fprintf(out, "# %d ranks on %d host%s\n", report->n_ranks, report->n_hosts,
            report->n_hosts == 1 ? "" : "s");
    for (int h = 0; h < report->n_hosts; h++) {
        fprintf(out, "#   %s:", report->hosts[h]);
        for (int r = 0; r < report->n_ranks; r++)
            if (report->host_of[r] == h)
                fprintf(out, " %d", r);
        fputc('\n', out);
    }
}

static void print_text(FILE *out, const struct connection_report *report)
{
    double latency_s = 0, bytes_per_s = 0;
    char text[512];
    print_hosts(out, report);
    for (int i = 0; i < report->n_pairs; i++) {
        const struct connection_pair *pair = &report->pairs[i];
        fprintf(out, "\n# Messages between rank %d on %s and rank %d on %s\n", pair->ranks[0],
                host_name(report, pair->ranks[0]), pair->ranks[1],
                host_name(report, pair->ranks[1]));
        fprintf(out, "%-10s%15s%19s%19s%14s\n", "# Size", "Latency (us)", "Bandwidth (MB/s)",
                "Both ways (MB/s)", "Overlap (%)");
        for (int m = 0; m < pair->n; m++) {
            const struct connection_message *row = &pair->messages[m];
            fprintf(out, "%-10lld%15.2f%19.2f%19.2f%14.0f\n", (long long)row->bytes,
                    row->latency_s * 1e6, row->one_way / 1e6, row->both_ways / 1e6,
                    100 * row->overlap);
        }
    }
    fprintf(out, "\n# All-reduce over %d ranks\n%-10s%15s%14s\n", report->n_ranks, "# Size",
            "Latency (us)", "Overlap (%)");
    for (int i = 0; i < report->n_sums; i++)
        fprintf(out, "%-10lld%15.2f%14.0f\n", (long long)report->sums[i].bytes,
                report->sums[i].seconds * 1e6, 100 * report->sums[i].overlap);
    connection_verdict(report, text, sizeof text);
    fprintf(out, "\n%s\n", text);
    connection_advice(report, text, sizeof text);
    connection_cost(report, &latency_s, &bytes_per_s);
    fprintf(out, "%s\n", text);
    fprintf(out, "train --plan-parallel: pass --latency-us %.4g --bandwidth-gb %.3g\n",
            latency_s * 1e6, bytes_per_s / 1e9);
}

static void put_pair(struct json_out *json, const struct connection_pair *pair)
{
    json_out_object(json, NULL);
    json_out_array_line(json, "ranks");
    json_out_int(json, NULL, pair->ranks[0]);
    json_out_int(json, NULL, pair->ranks[1]);
    json_out_close_array(json);
    json_out_bool(json, "one_host", pair->one_host);
    json_out_array(json, "messages");
    for (int m = 0; m < pair->n; m++) {
        const struct connection_message *row = &pair->messages[m];
        json_out_object_line(json, NULL);
        json_out_int(json, "bytes", row->bytes);
        json_out_real(json, "latency_s", row->latency_s);
        json_out_real(json, "bytes_per_s", row->one_way);
        json_out_real(json, "both_ways_bytes_per_s", row->both_ways);
        json_out_real(json, "overlap", row->overlap);
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_close_object(json);
}

static void put_sums(struct json_out *json, const struct connection_report *report)
{
    json_out_array(json, "sums");
    for (int i = 0; i < report->n_sums; i++) {
        json_out_object_line(json, NULL);
        json_out_int(json, "bytes", report->sums[i].bytes);
        json_out_real(json, "seconds", report->sums[i].seconds);
        json_out_real(json, "overlap", report->sums[i].overlap);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void print_json(FILE *out, const struct connection_report *report)
{
    struct json_out json;
    double latency_s = 0, bytes_per_s = 0;
    char text[512];
    connection_cost(report, &latency_s, &bytes_per_s);
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "version", MICROTOME_VERSION);
    json_out_array_line(&json, "hosts"); /* of each rank */
    for (int r = 0; r < report->n_ranks; r++)
        json_out_text(&json, NULL, host_name(report, r));
    json_out_close_array(&json);
    json_out_array(&json, "pairs");
    for (int i = 0; i < report->n_pairs; i++)
        put_pair(&json, &report->pairs[i]);
    json_out_close_array(&json);
    put_sums(&json, report);
    json_out_bool(&json, "crowded", report->crowded);
    json_out_real(&json, "latency_s", latency_s);
    json_out_real(&json, "bytes_per_s", bytes_per_s);
    connection_verdict(report, text, sizeof text);
    json_out_text(&json, "verdict", text);
    connection_advice(report, text, sizeof text);
    json_out_text(&json, "advice", text);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool start_ranks(const struct app *app, const struct doctor_args *given,
                        const struct args_result *operands, struct err *err)
{
    static char trial[] = APP_TRY_RANKS;
    struct doctor_args rank = *given;
    rank.ranks = 1;
    rank.common.threads = 1;
    char **line = args_line(&cmd_doctor.spec, &rank, operands);
    struct launch launch = {
        .ranks = (int)given->ranks, .arguments = line, .trial = trial, .stop = app->ctx.stop
    };
    bool ok = line ? launch_ranks(&launch, err) : err_memory(err, "arguments");
    args_line_free(line);
    return ok;
}

bool doctor_mpi(struct app *app, const struct doctor_args *given,
                const struct args_result *operands, struct err *err)
{
    struct ranks ranks;
    struct connection_report report = { 0 };
    if (operands->n_operands > 0)
        return err_set(err, ERR_USAGE, "%s: --mpi measures connections, not a folder; omit it",
                       operands->operands[0]);
    if (given->ranks > 1 && ranks_started() > 1)
        return err_set(err, ERR_USAGE, "--ranks: already running as one of %d ranks",
                       ranks_started());
    if (!launch_possible(err))
        return false;
    if (given->ranks > 1)
        return start_ranks(app, given, operands, err);
    if (ranks_started() < 2)
        return err_set(err, ERR_USAGE,
                       "--mpi: needs at least two ranks; pass --ranks 2 or more, or start the "
                       "command with mpirun");
    if (!ranks_begin(&ranks, err))
        return false;
    bool ok = connection_measure(&ranks, given->largest, FIGURE_S, &report, err);
    if (ok && ranks.rank == 0 && given->json)
        print_json(app->out, &report);
    else if (ok && ranks.rank == 0)
        print_text(app->out, &report);
    connection_free(&report);
    ranks_end(&ranks, ok);
    return ok;
}
