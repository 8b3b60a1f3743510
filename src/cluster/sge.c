/* sge.c: Grid Engine (Son of Grid Engine, Univa, Altair) through qsub, qstat, qdel and qconf. */
#include <stdlib.h>
#include <string.h>
#include "cluster/scheduler.h"
#include "cluster/shell.h"

/* SIGUSR1 is sent this long before the time limit, then SIGKILL; for a short limit, at a fifth of
 * it, within what counts as the end (record_out_of_time). */
#define WARNING_S 30

static const struct shell_host host = { "sge",
                                        "a submit host of the cluster (are its settings loaded?)" };

static bool max_array(int64_t *out, struct err *err)
{
    struct said said;
    if (!shell_ask(&host, (char *[]){ "qconf", "-sconf", NULL }, &said, err))
        return false;
    const char *at = strstr(said.out, "max_aj_tasks");
    long long size = at ? strtoll(at + strlen("max_aj_tasks"), NULL, 10) : 0;
    said_free(&said);
    *out = size > 0 ? size : 75000; /* 0: no limit; the usual one keeps the master at ease */
    return true;
}

static void directives(FILE *script, const struct job_request *job)
{
    const struct cluster_options *options = job->options;
    char time[32], soft[32];
    fprintf(script, "#$ -N %s\n#$ -S /bin/bash\n#$ -V\n#$ -cwd\n#$ -w e\n", job->name);
    fprintf(script, "#$ -o \"%s\"\n#$ -j y\n#$ -r y\n", job->log);
    if (job->ranks > 1)
        fprintf(script, "#$ -pe %s %lld\n", job->site->mpi_environment,
                (long long)(job->ranks * options->cpus));
    else if (options->cpus > 1)
        fprintf(script, "#$ -pe %s %lld\n", job->site->parallel_environment,
                (long long)options->cpus);
    if (options->memory_mb > 0)
        fprintf(script, "#$ -l %s=%.0fM\n", job->site->memory_resource, options->memory_mb);
    if (job->time_s > 0) {
        time_print(job->time_s, time);
        int64_t warning_s = job->time_s / 5 < WARNING_S ? job->time_s / 5 : WARNING_S;
        time_print(job->time_s - warning_s, soft);
        fprintf(script, "#$ -l h_rt=%s,s_rt=%s\n", time, soft);
    }
    if (options->partition)
        fprintf(script, "#$ -q %s\n", options->partition);
    if (options->account)
        fprintf(script, "#$ -P %s\n", options->account);
}

/* -hold_jid waits for the end of a job, successful or not. */
static void submit_functions(FILE *script, const struct cluster_options *options, int64_t number)
{
    char limit[32] = "";
    bool limited = options->max_running > 0;
    if (limited)
        snprintf(limit, sizeof limit, " -tc %lld", (long long)options->max_running);
    fprintf(script,
            "all=\n%s"
            "submit_array() { # OFFSET COUNT\n"
            "    id=$(qsub -terse -v MICROTOME_OFFSET=$1 -t 1-$2%s %s\"$tasks/array-%lld.sh\")\n"
            "    all=$all${all:+,}${id%%%%.*}%s\n"
            "}\n"
            "submit_last() {\n"
            "    qsub -terse -hold_jid $all \"$tasks/last-%lld.sh\" >/dev/null\n"
            "}\n",
            limited ? "previous=\n" : "", limit, limited ? "${previous:+-hold_jid $previous} " : "",
            (long long)number, limited ? "\n    previous=${id%%.*}" : "", (long long)number);
}

static bool submit(const char *script, struct err *err)
{
    return shell_submit(&host, (char *[]){ "qsub", "-terse", (char *)script, NULL }, err);
}

static bool explain(const char *text, const struct cluster_options *options, struct err *err)
{
    if (strstr(text, "unknown queue") || strstr(text, "Unknown queue"))
        return shell_unknown("--queue", options->partition, (char *[]){ "qconf", "-sql", NULL },
                             err);
    if (strstr(text, "parallel environment"))
        return err_set(err, ERR_USAGE,
                       "--cpus: unknown parallel environment; set parallel_environment in the "
                       "--site file (qconf -spl lists them): %.400s",
                       text);
    if (strstr(text, "no suitable queues"))
        return err_set(err, ERR_USAGE,
                       "no queue can run this job: request less with --memory, --cpus or --time "
                       "(qstat -F and qhost show what is available): %.500s",
                       text);
    if (strstr(text, "project"))
        return err_set(err, ERR_USAGE, "--account: rejected by Grid Engine: %.600s", text);
    return err_set(err, ERR_MISSING, "Grid Engine rejected the job: %.800s", text);
}

/* job-ID prior name user state ..., a line an element with -g d. */
static bool look(const char *name, struct job_counts *out, struct err *err)
{
    struct said said;
    *out = (struct job_counts){ 0 };
    if (!shell_ask(&host, (char *[]){ "qstat", "-u", "*", "-g", "d", NULL }, &said, err))
        return false;
    char *rest, *line = strtok_r(said.out, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        char job[32], prior[32], named[64], user[64], state[32];
        if (sscanf(line, "%31s %31s %63s %63s %31s", job, prior, named, user, state) != 5 ||
            strcmp(named, name) != 0)
            continue;
        if (strchr(state, 'E'))
            out->held++;
        else if (strchr(state, 'q'))
            out->waiting++, out->dependent += strchr(state, 'h') != NULL;
        else
            out->running++;
    }
    said_free(&said);
    return true;
}

static bool cancel(const char *name, struct err *err)
{
    return shell_ask(&host, (char *[]){ "qdel", (char *)name, NULL }, NULL, err);
}

const struct scheduler scheduler_sge = {
    .name = "sge",
    .title = "Grid Engine",
    .mark = "#$",
    .log_signs = "$JOB_ID.$TASK_ID",
    .element = "$SGE_TASK_ID",
    .log_shell = "$JOB_ID.$SGE_TASK_ID",
    .requeue = "exit 99 # run it again",
    .max_array = max_array,
    .directives = directives,
    .submit_functions = submit_functions,
    .submit = submit,
    .explain = explain,
    .look = look,
    .cancel = cancel,
};
