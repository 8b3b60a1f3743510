/* main.c: the table of commands. Finds the command, parses its options, gives it threads, a
 * progress report and a stop flag, and turns its error into one line and an exit code: 0 done, 1
 * failed, 2 wrong usage, 75 stopped with everything saved (run again to continue), 130 stopped by
 * the user. */
#include "cli/app.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/names.h"
#include "base/plain.h"
#include "base/pool.h"
#include "base/console.h"
#include "base/room.h"
#include "base/version.h"
#include "cli/describe.h"
#include "dist/ranks.h"

extern const struct command cmd_phantom, cmd_info, cmd_tissue, cmd_extract, cmd_train, cmd_model,
    cmd_doctor, cmd_evaluate, cmd_predict, cmd_report, cmd_classify, cmd_task, cmd_status,
    cmd_cancel, cmd_tune, cmd_explain, cmd_nuclei, cmd_synthesize;

const struct command *const commands[] = {
    &cmd_phantom,    &cmd_info,     &cmd_tissue,   &cmd_extract, &cmd_train,
    &cmd_predict,    &cmd_classify, &cmd_evaluate, &cmd_nuclei,  &cmd_explain,
    &cmd_synthesize, &cmd_report,   &cmd_model,    &cmd_doctor,  &cmd_tune,
    &cmd_status,     &cmd_cancel,   &cmd_task,     NULL,
};

static atomic_bool stop_asked, told_to_end;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&stop_asked, true);
    if (atomic_exchange(&told_to_end, true))
        _exit(130); /* second signal: stop at once */
}

/* From mpirun, which passes it to every rank, or from Grid Engine, which gives it to every process
 * of a job, whose script then sends SIGTERM: a request to stop, without urgency. */
static void on_relayed_signal(int number)
{
    (void)number;
    atomic_store(&stop_asked, true);
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct sigaction relayed = { .sa_handler = on_relayed_signal };
    sigaction(SIGUSR1, &relayed, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, seen when stdout is checked */
}

#define LEAST_ROOM ((size_t)128 << 20) /* of addresses, for what libraries allocate unchecked */

/* malloc reserves 64 MB of addresses per thread. If address space is limited, the threads of a
 * large machine would use it all up. */
static bool check_room(struct err *err)
{
    if (room_limit() == 0)
        return true;
    mallopt(M_ARENA_MAX, 2);
    return room_for(LEAST_ROOM) ||
           err_set(err, ERR_MEMORY,
                   "out of memory: the limit of %zu MB of address space (ulimit -v, h_vmem) leaves "
                   "less than %zu MB beside the program and its libraries; request more",
                   room_limit() >> 20, LEAST_ROOM >> 20);
}

static int exit_code(const struct err *err)
{
    switch (err->kind) {
    case ERR_USAGE:
        return 2;
    case ERR_REQUEUE:
        return 75; /* EX_TEMPFAIL: a scheduler may queue it again */
    case ERR_STOPPED:
        return 130;
    default:
        return 1;
    }
}

void command_each(void (*take)(const struct command *command, void *arg), void *arg)
{
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->members)
            take(commands[i], arg);
        for (size_t k = 0; commands[i]->members && commands[i]->members[k]; k++)
            take(commands[i]->members[k], arg);
    }
}

/* Whether a command has this name, in which '-' may stand for the blank behind its family. */
static bool has_name(const struct command *command, const char *name)
{
    const char *own = command->spec.name;
    while (*own && (*own == *name || (*own == ' ' && *name == '-')))
        own++, name++;
    return *own == *name;
}

const struct command *command_called(const char *name)
{
    for (size_t i = 0; commands[i]; i++) {
        if (has_name(commands[i], name))
            return commands[i];
        for (size_t k = 0; commands[i]->members && commands[i]->members[k]; k++)
            if (has_name(commands[i]->members[k], name))
                return commands[i]->members[k];
    }
    return NULL;
}

/* family NULL: none of all commands has this name. */
static int unknown_command(const struct command *family, const char *name)
{
    const struct command *const *list = family ? family->members : commands;
    const char *names[64] = { 0 }, *before = family ? family->spec.name : "",
               *blank = family ? " " : "";
    size_t n = 0, skip = strlen(before) + strlen(blank);
    for (; list[n] && n < 64; n++)
        names[n] = list[n]->spec.name + skip;
    const char *nearest = names_nearest(name, names, n);
    char plain[256];
    plain_copy(plain, sizeof plain, name);
    if (nearest)
        fprintf(stderr, "microtome: no command '%s%s%s'; did you mean '%s%s%s'?\n", before, blank,
                plain, before, blank, nearest);
    else
        fprintf(stderr, "microtome: no command '%s%s%s'; 'microtome %s%s--help' lists them\n",
                before, blank, plain, before, blank);
    return 2;
}

static enum console_mode console_mode(bool quiet)
{
    if (quiet)
        return CONSOLE_QUIET;
    return isatty(STDERR_FILENO) ? CONSOLE_TERMINAL : CONSOLE_LINES;
}

static bool run_command(const struct command *command, struct app *app, void *options,
                        const struct args_result *operands, struct err *err)
{
    const struct common_options *common = options;
    if (!check_room(err))
        return false;
    struct pool *pool = pool_new((int)common->threads);
    struct console *console = console_new(stderr, console_mode(common->quiet));
    bool ok = false;
    if (pool && console) {
        app->ctx = (struct ctx){ .console = console, .pool = pool, .stop = &stop_asked };
        ok = command->run(app, options, operands, err);
    } else {
        err_memory(err, "threads");
    }
    console_free(console);
    pool_free(pool);
    return ok;
}

void app_complain(const char *command, const struct err *err)
{
    fprintf(stderr, "microtome %s: ", command);
    plain_print(stderr, err->text);
    fputc('\n', stderr);
}

static int main_command(const struct command *command, struct app *app, int argc, char **argv)
{
    struct err err = { 0 };
    struct args_result operands;
    void *options = calloc(1, command->options_size);
    bool ok = options || err_memory(&err, "options");
    ok = ok && args_parse(&command->spec, argc, argv, options, &operands, &err);
    if (ok && operands.help)
        args_print_help(&command->spec, stdout);
    else if (ok)
        ok = run_command(command, app, options, &operands, &err);
    free(options);
    if (ok && (fflush(app->out) != 0 || ferror(app->out) || fflush(stdout) != 0 || ferror(stdout)))
        ok = err_errno(&err, "standard output", "write");
    if (!ok && err.text[0]) /* no text: another process has reported it */
        app_complain(command->spec.name, &err);
    return ok ? 0 : exit_code(&err);
}

/* For --ranks, after a failure: can ranks be started at all? */
static int try_ranks(void)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    ranks_end(&ranks, true);
    return 0;
}

/* NULL: the family has no such member. */
static const struct command *member_called(const struct command *family, const char *name)
{
    size_t skip = strlen(family->spec.name) + 1;
    for (size_t i = 0; family->members[i]; i++)
        if (strcmp(family->members[i]->spec.name + skip, name) == 0)
            return family->members[i];
    return NULL;
}

/* words: that name the command, behind the program's. */
static int start_command(const struct command *command, int words, int argc, char **argv)
{
    catch_signals();
    char **typed = malloc((size_t)argc * sizeof *typed); /* parsing reorders argv */
    FILE *out = plain_stream(stdout);
    int code = 1;
    if (typed && out) {
        memcpy(typed, argv, (size_t)argc * sizeof *typed);
        struct app app = { .out = out, .argc = argc, .argv = typed };
        code = main_command(command, &app, argc - words, argv + words);
    }
    if (out)
        fclose(out); /* its contents have been flushed and checked */
    free(typed);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        describe_program(argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("microtome " MICROTOME_VERSION);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (strncmp(argv[1], "--describe-", 11) == 0) /* for the build: man page, shell completion */
        return describe_for_build(argv[1] + 11, stdout);
    if (strcmp(argv[1], APP_TRY_RANKS) == 0)
        return try_ranks();
    const struct command *command = command_called(argv[1]);
    if (!command)
        return unknown_command(NULL, argv[1]);
    if (!command->members)
        return start_command(command, 1, argc, argv);
    if (argc < 3 || strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0) {
        describe_family(command, argc < 3 ? stderr : stdout);
        return argc < 3 ? 2 : 0;
    }
    const struct command *member = member_called(command, argv[2]);
    return member ? start_command(member, 2, argc, argv) : unknown_command(command, argv[2]);
}
