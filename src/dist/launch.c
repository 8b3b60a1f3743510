/* launch.c: see launch.h. mpirun is asked not to bind ranks to single processors (each has threads
 * of its own), to give way to these while it waits, and to take more ranks than there are
 * processors. It stands in a process group of its own: a Ctrl-C at the terminal comes to this
 * process alone, which hands it on as SIGUSR1. mpirun passes that to the ranks; at SIGINT or
 * SIGTERM it would kill them before they have saved. */
#include "dist/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_OPTIONS 16

extern char **environ;

/* mpirun's command line; pointers into `number`, `program` and the arguments. NULL: no memory. */
static char **command_line(const struct launch *launch, char *number, char *program)
{
    static char mpirun[] = "mpirun", n[] = "-n", quiet[] = "--quiet", over[] = "--oversubscribe",
                bind[] = "--bind-to", none[] = "none", root[] = "--allow-run-as-root",
                set[] = "--mca", yield[] = "mpi_yield_when_idle", on[] = "1";
    size_t given = 0, at = 0;
    while (launch->arguments[given])
        given++;
    char **line = calloc(given + MAX_OPTIONS, sizeof *line);
    if (!line)
        return NULL;
    char *const options[] = { mpirun, n, number, quiet, over, bind, none, set, yield, on };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        line[at++] = options[i];
    if (geteuid() == 0)
        line[at++] = root;
    line[at++] = program;
    memcpy(line + at, launch->arguments, given * sizeof *line);
    return line;
}

/* Everything as in a fresh process: handlers and masks are not for mpirun. */
static int spawn(pid_t *pid, char *const *line)
{
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t all, no_signals;
    sigemptyset(&no_signals);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &no_signals);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    int code = posix_spawnp(pid, line[0], &files, &attr, line, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return code;
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
    if (code > 128)
        return err_set(err, ERR_IO,
                       "a rank was ended by signal %d (%s), so all were; --resume goes on from the "
                       "last checkpoint",
                       code - 128, strsignal(code - 128));
    return err_set(err, ERR_IO, "mpirun ended with exit code %d", code);
}

/* Waits for the child; hands a wish to stop on, once. */
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
        if (!told && launch->stop && atomic_load(launch->stop)) {
            kill(pid, SIGUSR1);
            told = true;
        }
        nanosleep(&pause, NULL);
    }
}

bool launch_ranks(const struct launch *launch, struct err *err)
{
    char number[16], program[4096];
    pid_t pid = 0;
    if (!launch_possible(err))
        return false;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return err_errno(err, "/proc/self/exe", "read");
    program[length] = 0;
    snprintf(number, sizeof number, "%d", launch->ranks);
    char **line = command_line(launch, number, program);
    if (!line)
        return err_memory(err, "mpirun's arguments");
    int code = spawn(&pid, line);
    free(line);
    if (code != 0)
        return err_set(err, ERR_MISSING, "mpirun: %s; --ranks needs Open MPI's mpirun",
                       strerror(code));
    return wait_for(launch, pid, err);
}
