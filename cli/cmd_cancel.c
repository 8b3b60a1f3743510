/* cmd_cancel.c: microtome cancel: ends the jobs of a submission, or the run on this computer. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "cli/cluster.h"

struct cancel_args {
    struct common_options common;
};

#define AT(field) offsetof(struct cancel_args, field)

static const struct arg args[] = { COMMON_ARGS };

static bool cancel_jobs(struct app *app, const struct submission *submission, bool *found,
                        struct err *err)
{
    const struct scheduler *scheduler = scheduler_named(submission->scheduler);
    struct job_counts jobs;
    if (!scheduler->look(submission->name, &jobs, err))
        return false;
    int64_t n = jobs.waiting + jobs.running + jobs.held;
    *found = n > 0;
    if (n > 0 && !scheduler->cancel(submission->name, err))
        return false;
    if (n > 0)
        fprintf(app->out, "cancelled %lld jobs of %s (%s)\n", (long long)n, scheduler->title,
                submission->name);
    return true;
}

static bool cancel_process(struct app *app, const char *folder, bool *found, struct err *err)
{
    struct claim_holder holder;
    char here[256] = "";
    if (!claim_look(folder, &holder) || !holder.alive)
        return true;
    gethostname(here, sizeof here - 1);
    *found = true;
    if (strcmp(here, holder.host) != 0)
        return err_set(err, ERR_IO, "%s: in use by process %ld on %s; end it there", folder,
                       holder.pid, holder.host);
    if (kill((pid_t)holder.pid, SIGTERM) != 0)
        return err_errno(err, folder, "end the process that uses it");
    fprintf(app->out, "process %ld was asked to stop\n", holder.pid);
    return true;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    (void)options;
    struct task_list list = { .folder = operands->operands[0] };
    struct submission submission;
    bool jobs = false, process = false;
    if (!file_is_folder(list.folder))
        return err_set(err, ERR_MISSING, "%s: no such folder", list.folder);
    bool ok = !submission_read(&list, &submission) || cancel_jobs(app, &submission, &jobs, err);
    ok = ok && cancel_process(app, list.folder, &process, err);
    if (ok && !jobs && !process)
        fprintf(app->out, "nothing is running in %s\n", list.folder);
    else if (ok)
        fputs("completed results are kept; run the same command again to do the rest\n", app->out);
    return ok;
}

const struct command cmd_cancel = {
    .spec = { .name = "cancel",
              .summary = "end the run or jobs in a results folder",
              .operands = "DIR",
              .min_operands = 1,
              .max_operands = 1,
              .description =
                  "Ends the jobs that a command with --on slurm or --on sge submitted for "
                  "the results folder DIR, or the run on this computer that writes to "
                  "it. Completed results are kept.",
              .example = "microtome cancel results",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct cancel_args),
    .run = run,
};
