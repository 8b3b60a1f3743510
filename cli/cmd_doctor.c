/* cmd_doctor.c: microtome doctor: checks the installation and the machine. */
#include <stddef.h>
#include <string.h>
#include "base/json.h"
#include "base/version.h"
#include "cli/doctor.h"
#include "doctor/doctor.h"

#define LARGEST_BYTES 16777216 /* also the default */

static void print_text(FILE *stream, const struct doctor_list *list)
{
    const char *area = "";
    fprintf(stream, "microtome %s\n", MICROTOME_VERSION);
    for (size_t i = 0; i < list->n; i++) {
        const struct doctor_finding *found = &list->items[i];
        if (strcmp(area, found->area) != 0)
            fprintf(stream, "\n%s\n", found->area);
        area = found->area;
        fprintf(stream, "  %-7s%-13s%s\n", doctor_state_names[found->state], found->name,
                found->fact);
        if (found->meaning[0])
            fprintf(stream, "%22s%s\n", "", found->meaning);
        if (found->remedy[0])
            fprintf(stream, "%22sremedy: %s\n", "", found->remedy);
    }
    fprintf(stream, "\n%s\n",
            doctor_broken(list) ? "A required part is broken; see 'broken' above."
                                : "Everything required is available.");
}

static void print_json(FILE *stream, const struct doctor_list *list)
{
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "version", MICROTOME_VERSION);
    json_out_bool(&json, "works", !doctor_broken(list));
    json_out_array(&json, "findings");
    for (size_t i = 0; i < list->n; i++) {
        const struct doctor_finding *found = &list->items[i];
        json_out_object(&json, NULL);
        json_out_text(&json, "area", found->area);
        json_out_text(&json, "name", found->name);
        json_out_text(&json, "state", doctor_state_names[found->state]);
        json_out_text(&json, "fact", found->fact);
        json_out_text(&json, "meaning", found->meaning);
        json_out_text(&json, "remedy", found->remedy[0] ? found->remedy : NULL);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct doctor_args *o = options;
    struct doctor_list list = { 0 };
    if (o->mpi)
        return doctor_mpi(app, o, operands, err);
    if (o->ranks > 1)
        return err_set(err, ERR_USAGE, "--ranks: only for --mpi");
    if (o->largest != LARGEST_BYTES)
        return err_set(err, ERR_USAGE, "--largest: only for --mpi");
    if (!doctor_examine(operands->n_operands ? operands->operands[0] : ".", "", &list, err))
        return false;
    if (o->json)
        print_json(app->out, &list);
    else
        print_text(app->out, &list);
    bool broken = doctor_broken(&list);
    doctor_free(&list);
    return !broken || err_set(err, ERR_MISSING, "a required part is broken");
}

#define AT(field) offsetof(struct doctor_args, field)

static const struct arg args[] = {
    FLAG_ARG(
        "mpi", mpi,
        "measure instead how fast ranks reach each other: latency, bandwidth and all-reduce by "
        "size, and how much of it computation hides; needs --ranks N or mpirun"),
    INT_ARG("ranks", ranks, "N", "1", 1, 1 << 20,
            "with --mpi: measure between N processes, started by mpirun"),
    INT_ARG("largest", largest, "BYTES", "16777216", 4, LARGEST_BYTES,
            "with --mpi: the largest message; a smaller one takes less time"),
    FLAG_ARG("json", json, "print the findings as JSON"),
    COMMON_ARGS,
};

const struct command cmd_doctor = {
    .spec = { .name = "doctor",
              .summary = "check the installation and the machine",
              .operands = "[DIR]",
              .min_operands = 0,
              .max_operands = 1,
              .description =
                  "Checks the libraries, the processor, memory and disk, container limits, MPI and "
                  "schedulers; explains what each part is for and what to do if something is "
                  "missing. DIR is where results would go (default: the current folder). Nothing "
                  "is written. The exit code is 0 unless a required part is "
                  "broken.",
              .example = "microtome doctor\n"
                         "microtome doctor /scratch --json\n"
                         "microtome doctor --mpi --ranks 2\n"
                         "mpirun -n 4 --map-by node microtome doctor --mpi",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct doctor_args),
    .run = run,
};
