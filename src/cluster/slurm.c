/* slurm.c: SLURM through sbatch, squeue, scancel and scontrol. */
#include <stdlib.h>
#include <string.h>
#include "cluster/scheduler.h"
#include "cluster/shell.h"

#define WARNING_S 60 /* before the end of a job that saves its state first */

static const struct shell_host host = { "slurm",
                                        "a login node of the cluster (is its module loaded?)" };

static bool max_array(int64_t *out, struct err *err)
{
    struct said said;
    if (!shell_ask(&host, (char *[]){ "scontrol", "show", "config", NULL }, &said, err))
        return false;
    const char *at = strstr(said.out, "MaxArraySize");
    at = at ? strchr(at, '=') : NULL;
    long long size = at ? strtoll(at + 1, NULL, 10) : 1001;
    said_free(&said);
    *out = size - 1; /* it is the highest index plus one; ours begin at 1 */
    return size > 1 || err_set(err, ERR_MISSING,
                               "--on slurm: this cluster allows no job arrays "
                               "(MaxArraySize)");
}

static void directives(FILE *script, const struct job_request *job)
{
    const struct cluster_options *options = job->options;
    char time[32];
    fprintf(script, "#SBATCH --job-name=%s\n", job->name);
    fprintf(script, "#SBATCH --output=\"%s\"\n#SBATCH --open-mode=append\n", job->log);
    fputs("#SBATCH --requeue\n", script);
    if (job->ranks > 1)
        fprintf(script, "#SBATCH --ntasks=%lld\n", (long long)job->ranks);
    if (job->warned) /* B: the script, which hands it on */
        fprintf(script, "#SBATCH --signal=B:TERM@%lld\n",
                (long long)(job->time_s > 0 && job->time_s < 4 * WARNING_S ? job->time_s / 4
                                                                           : WARNING_S));
    fprintf(script, "#SBATCH --cpus-per-task=%lld\n", (long long)options->cpus);
    if (options->memory_mb > 0)
        fprintf(script, "#SBATCH --mem=%.0fM\n", options->memory_mb);
    if (job->time_s > 0) {
        time_print(job->time_s, time);
        fprintf(script, "#SBATCH --time=%s\n", time);
    }
    if (options->partition)
        fprintf(script, "#SBATCH --partition=%s\n", options->partition);
    if (options->account)
        fprintf(script, "#SBATCH --account=%s\n", options->account);
}

/* A variable named in --export would make every node run a login shell first; taken from the
 * environment it costs nothing. With --max-running several arrays run one after another, so that no
 * more run at once. A failed element must not keep the last job waiting: afterany. */
static void submit_functions(FILE *script, const struct cluster_options *options, int64_t number)
{
    char limit[32] = "";
    bool limited = options->max_running > 0;
    if (limited)
        snprintf(limit, sizeof limit, "%%%lld", (long long)options->max_running);
    fprintf(script,
            "all=\n%s"
            "submit_array() { # OFFSET COUNT\n"
            "    id=$(MICROTOME_OFFSET=$1 sbatch --parsable --export=ALL --array=1-$2%s \\\n"
            "        %s\"$tasks/array-%lld.sh\")\n"
            "    all=$all:${id%%%%;*}%s\n"
            "}\n"
            "submit_last() {\n"
            "    sbatch --parsable --dependency=afterany$all \"$tasks/last-%lld.sh\" >/dev/null\n"
            "}\n",
            limited ? "previous=\n" : "", limit,
            limited ? "${previous:+--dependency=afterany:$previous} " : "", (long long)number,
            limited ? "\n    previous=${id%%;*}" : "", (long long)number);
}

static bool submit(const char *script, struct err *err)
{
    return shell_submit(&host, (char *[]){ "sbatch", "--parsable", (char *)script, NULL }, err);
}

static bool explain(const char *text, const struct cluster_options *options, struct err *err)
{
    if (strstr(text, "invalid partition") || strstr(text, "Invalid partition"))
        return shell_unknown("--partition", options->partition,
                             (char *[]){ "sinfo", "-h", "-o", "%R", NULL }, err);
    if (strstr(text, "Memory required") || strstr(text, "Memory specification"))
        return err_set(err, ERR_USAGE,
                       "--memory: no node of %s%s has %.0f MB for a job; request less, or another "
                       "--partition (sinfo -o '%%R %%m' shows what is available)",
                       options->partition ? "partition " : "the cluster",
                       options->partition ? options->partition : "", options->memory_mb);
    if (strstr(text, "node configuration is not available") || strstr(text, "CPU count"))
        return err_set(err, ERR_USAGE,
                       "--cpus, --memory: no node has %lld processors%s for one job; request less "
                       "(sinfo -o '%%R %%c %%m' shows what is available)",
                       (long long)options->cpus, options->memory_mb > 0 ? " and that memory" : "");
    if (strstr(text, "time limit"))
        return err_set(err, ERR_USAGE,
                       "--time: longer than the partition allows (sinfo -o '%%R %%l' shows the "
                       "limits): %.400s",
                       text);
    if (strstr(text, "account"))
        return err_set(err, ERR_USAGE, "--account: rejected by SLURM: %.600s", text);
    return err_set(err, ERR_MISSING, "SLURM rejected the job: %.800s", text);
}

static bool look(const char *name, struct job_counts *out, struct err *err)
{
    struct said said;
    *out = (struct job_counts){ 0 };
    if (!shell_ask(&host,
                   (char *[]){ "squeue", "-h", "-r", "-o", "%T %r", "--name", (char *)name, NULL },
                   &said, err))
        return false;
    char *rest, *line = strtok_r(said.out, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        if (strstr(line, "DependencyNeverSatisfied") || strstr(line, "eld") ||
            strstr(line, "PartitionConfig") || strstr(line, "BadConstraints"))
            out->held++;
        else if (strncmp(line, "PENDING", 7) == 0 || strncmp(line, "REQUEUE", 7) == 0)
            out->waiting++, out->dependent += strstr(line, "Dependency") != NULL;
        else
            out->running++;
    }
    said_free(&said);
    return true;
}

static bool cancel(const char *name, struct err *err)
{
    return shell_ask(&host, (char *[]){ "scancel", "--name", (char *)name, NULL }, NULL, err);
}

const struct scheduler scheduler_slurm = {
    .name = "slurm",
    .title = "SLURM",
    .mark = "#SBATCH",
    .log_signs = "%A.%a",
    .element = "$SLURM_ARRAY_TASK_ID",
    .log_shell = "$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID",
    .requeue = "scontrol requeue \"$SLURM_JOB_ID\" && sleep 60 # until it ends this one",
    .max_array = max_array,
    .directives = directives,
    .submit_functions = submit_functions,
    .submit = submit,
    .explain = explain,
    .look = look,
    .cancel = cancel,
};
