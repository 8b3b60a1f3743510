/* launch.c: see launch.h. mpirun is told not to bind ranks to single processors (each has several
 * threads), to yield to these while it waits, and to accept more ranks than there are processors.
 * It runs in a separate process group: Ctrl-C at the terminal reaches only this process, which
 * passes it on as SIGUSR1. mpirun forwards that to the ranks; at SIGINT or SIGTERM it would kill
 * them before they have saved. mpirun gets the same signal when this process dies. */
#include "dist/launch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/pool.h"
#include "dist/watch.h"

#define MAX_OPTIONS 32

/* Options by which mpirun notices within two minutes that a host is lost, not after eight; a user's
 * own setting stays. Returns their number. */
static size_t keep_alive(char **line)
{
    static char set[] = "--mca", time[] = "oob_tcp_keepalive_time", time_s[] = "60",
                interval[] = "oob_tcp_keepalive_intvl", interval_s[] = "15",
                probes[] = "oob_tcp_keepalive_probes", n[] = "4";
    char *const options[] = { set, time, time_s, set, interval, interval_s, set, probes, n };
    if (getenv("OMPI_MCA_oob_tcp_keepalive_time"))
        return 0;
    memcpy(line, options, sizeof options);
    return sizeof options / sizeof *options;
}

/* mpirun's command line for the program with these arguments; pointers into them, `number` and
 * `program`. quiet: without mpirun's own messages, because the ranks print theirs. NULL: no memory.
 */
static char **command_line(char *const *arguments, bool quiet, char *number, char *program)
{
    static char mpirun[] = "mpirun", n[] = "-n", over[] = "--oversubscribe", bind[] = "--bind-to",
                none[] = "none", set[] = "--mca", yield[] = "mpi_yield_when_idle", on[] = "1",
                silent[] = "--quiet", root[] = "--allow-run-as-root";
    size_t given = 0, at = 0;
    while (arguments[given])
        given++;
    char **line = calloc(given + MAX_OPTIONS, sizeof *line);
    if (!line)
        return NULL;
    char *const options[] = { mpirun, n, number, over, bind, none, set, yield, on };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        line[at++] = options[i];
    at += keep_alive(line + at);
    if (quiet)
        line[at++] = silent;
    if (geteuid() == 0)
        line[at++] = root;
    line[at++] = program;
    memcpy(line + at, arguments, given * sizeof *line);
    return line;
}

/* In the child, between fork and exec. Resets handlers and masks, which are not for mpirun. If
 * `parent` dies, mpirun gets the signal that it forwards to the ranks: they save and exit. */
static void become(char *const *line, int out, int errors, pid_t parent, int failed)
{
    struct sigaction ordinary = { .sa_handler = SIG_DFL };
    sigset_t no_signals;
    int nothing = open("/dev/null", O_RDONLY);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &ordinary, NULL);
    sigemptyset(&no_signals);
    sigprocmask(SIG_SETMASK, &no_signals, NULL);
    setpgid(0, 0);
    dup2(nothing, STDIN_FILENO);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (errors >= 0)
        dup2(errors, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() == parent)
        execvp(line[0], line);
    int code = errno;
    if (write(failed, &code, sizeof code) < 0)
        _exit(126);
    _exit(127);
}

/* out, errors: where its output goes, or -1. Returns an errno; 0: it is running. */
static int spawn(pid_t *pid, char *const *line, int out, int errors)
{
    int failed[2], code = 0;
    pid_t parent = getpid();
    if (pipe2(failed, O_CLOEXEC) != 0)
        return errno;
    *pid = fork();
    if (*pid == 0)
        become(line, out, errors, parent, failed[1]);
    if (*pid < 0)
        code = errno;
    close(failed[1]);
    ssize_t got = 0;
    while (*pid > 0 && (got = read(failed[0], &code, sizeof code)) < 0 && errno == EINTR)
        ;
    close(failed[0]);
    if (got > 0) /* it could not begin */
        waitpid(*pid, NULL, 0);
    return got > 0 || *pid < 0 ? code : 0;
}

static bool verdict(int status, struct err *err)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    switch (code) {
    case 0:
        return true;
    case 1:
        return err_set(err, ERR_IO, "%s", "");
    case 2:
        return err_set(err, ERR_USAGE, "%s", "");
    case 75:
        return err_set(err, ERR_REQUEUE, "%s", "");
    case 130:
        return err_set(err, ERR_STOPPED, "%s", "");
    default:
        break;
    }
    if (code == WATCH_EXIT_CODE)
        return err_set(err, ERR_IO,
                       "a rank waited too long for the others, which ended all ranks; continue "
                       "from the last checkpoint with --resume");
    if (code >= 128 + NSIG) /* no signal: mpirun's own */
        return err_set(err, ERR_IO,
                       "mpirun lost a host or the connection to it, which ended all ranks (exit "
                       "code %d); continue from the last checkpoint with --resume",
                       code);
    if (code > 128)
        return err_set(err, ERR_IO,
                       "a rank was killed by signal %d (%s), which ended all ranks; continue from "
                       "the last checkpoint with --resume",
                       code - 128, strsignal(code - 128));
    return err_set(err, ERR_MISSING, "mpirun failed with exit code %d", code);
}

static bool is_stopped(const struct launch *launch)
{
    return launch->stop && atomic_load(launch->stop);
}

/* Waits for the child; passes a request to stop on, once. */
static bool wait_for(const struct launch *launch, pid_t pid, struct err *err)
{
    bool told = false;
    const struct timespec pause = { .tv_nsec = 50000000 };
    for (;;) {
        int status = 0;
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            return verdict(status, err);
        if (ended < 0 && errno != EINTR)
            return err_errno(err, "mpirun", "wait for");
        if (!told && is_stopped(launch)) {
            kill(pid, SIGUSR1);
            told = true;
        }
        nanosleep(&pause, NULL);
    }
}

/* --- why mpirun failed --- */

#define TRIAL_S 60
#define TRIALS 8 /* Open MPI 4 often loses the message of a rank that fails on starting */

/* Its first words, between ruled lines, on one line; logged: with those that it logs of itself,
 * "[host:process] ..". */
static void squeeze(FILE *said, bool logged, char *text, size_t size)
{
    char line[512];
    size_t n = 0;
    rewind(said);
    while (fgets(line, sizeof line, said)) {
        bool rule = strncmp(line, "-----", 5) == 0, left_out = line[0] == '[' && !logged;
        if (rule && n > 0)
            break;
        for (const char *from = rule || left_out ? "" : line; *from && n + 2 < size; from++) {
            bool space = isspace((unsigned char)*from);
            if (!space || (n > 0 && text[n - 1] != ' '))
                text[n++] = space ? ' ' : *from;
        }
    }
    text[n > 0 && text[n - 1] == ' ' ? n - 1 : n] = 0;
}

/* Not its log, and not what Open MPI says after the reason, which alone says little. */
static bool is_reason(const char *text)
{
    static const char after[] = "It looks like MPI_INIT failed";
    return text[0] && text[0] != '[' && strncmp(text, after, sizeof after - 1) != 0;
}

/* A host that does not answer would be waited for without end. */
static int wait_at_most(pid_t pid, double seconds)
{
    const struct timespec pause = { .tv_nsec = 20000000 };
    double until_s = clock_monotonic_s() + seconds;
    int status = 1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_monotonic_s() > until_s)
            kill(pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
    return status;
}

/* Runs the line; whether it ended well. text: what it said, if that says more than what is there.
 */
static bool try_line(char *const *line, char *text, size_t size)
{
    FILE *said = tmpfile();
    char now[800] = "";
    pid_t pid = 0;
    int status = 1;
    if (said && spawn(&pid, line, fileno(said), fileno(said)) == 0) {
        status = wait_at_most(pid, TRIAL_S);
        squeeze(said, false, now, sizeof now);
        if (!now[0])
            squeeze(said, true, now, sizeof now);
    }
    if (said)
        fclose(said);
    if (is_reason(now) || !text[0])
        snprintf(text, size, "%s", now);
    return status == 0;
}

/* After exit codes shared by mpirun and the ranks: starts ranks that exit at once. If they cannot
 * start, `err` gets mpirun's reason; else the ranks had started and have printed their error. */
static void try_ranks(const struct launch *launch, char *number, char *program, struct err *err)
{
    char *const arguments[] = { launch->trial, NULL };
    char **line = command_line(arguments, false, number, program), text[800] = "";
    bool well = !line;
    for (int i = 0; i < TRIALS && !well && !is_reason(text) && !is_stopped(launch); i++)
        well = try_line(line, text, sizeof text);
    if (!well)
        err_set(err, ERR_MISSING,
                "mpirun cannot start %s ranks: %s; fix Open MPI's settings (OMPI_MCA_..., "
                "hostfiles), or train without --ranks",
                number, text[0] ? text : "no reason given");
    free(line);
}

int launch_threads(int processors, int ranks)
{
    return processors > ranks ? processors / ranks : 1;
}

bool launch_bearable(int ranks, int processors, bool hosts, struct err *err)
{
    int most = LAUNCH_CROWD * processors;
    if (hosts || ranks <= most)
        return true;
    return err_set(err, ERR_USAGE,
                   "--ranks: %d: this machine has %d processor%s, and at most %d ranks are started "
                   "on it; for more machines use --on slurm, --on sge or mpirun",
                   ranks, processors, processors == 1 ? "" : "s", most);
}

/* mpirun takes hosts from a scheduler's job, or from a hostfile that a user has set. */
static bool has_hosts(void)
{
    static const char *const names[] = { "SLURM_JOB_ID", "PE_HOSTFILE", "PBS_NODEFILE",
                                         "LSB_DJOB_HOSTFILE", "OMPI_MCA_orte_default_hostfile" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

bool launch_ranks(const struct launch *launch, struct err *err)
{
    char number[16], program[4096];
    pid_t pid = 0;
    if (!launch_possible(err) ||
        !launch_bearable(launch->ranks, pool_processors(), has_hosts(), err))
        return false;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return err_errno(err, "/proc/self/exe", "read");
    program[length] = 0;
    snprintf(number, sizeof number, "%d", launch->ranks);
    char **line = command_line(launch->arguments, true, number, program);
    if (!line)
        return err_memory(err, "mpirun's arguments");
    int nothing = launch->no_output ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    int code = spawn(&pid, line, nothing, -1);
    if (nothing >= 0)
        close(nothing);
    free(line);
    if (code != 0)
        return err_set(err, ERR_MISSING, "mpirun: %s; --ranks needs Open MPI's mpirun",
                       strerror(code));
    struct err why = { 0 };
    bool ok = wait_for(launch, pid, &why);
    bool spoken = !why.text[0] && (why.kind == ERR_IO || why.kind == ERR_USAGE);
    if (!ok && (spoken || why.kind == ERR_MISSING))
        try_ranks(launch, number, program, &why);
    if (!ok && err)
        *err = why;
    return ok;
}
