/* shell.c: see shell.h. */
#include "cluster/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/names.h"

extern char **environ;

static char *read_all(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = calloc((size_t)(size > 0 ? size : 0) + 1, 1);
    if (text && size > 0 && pread(fd, text, (size_t)size, 0) != size)
        text[0] = 0;
    return text;
}

bool shell_run(char *const *argv, struct said *out, struct err *err)
{
    *out = (struct said){ 0 };
    int fds[2] = { memfd_create("out", MFD_CLOEXEC), memfd_create("errors", MFD_CLOEXEC) };
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 0;
    bool ok = fds[0] >= 0 && fds[1] >= 0;
    if (!ok) {
        err_errno(err, argv[0], "run");
        if (fds[0] >= 0)
            close(fds[0]);
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fds[0], 1);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
    errno = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno == ENOENT)
        ok = err_set(err, ERR_MISSING, "%s: program not found", argv[0]);
    else if (errno != 0)
        ok = err_errno(err, argv[0], "run");
    while (ok && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (ok) {
        out->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        out->out = read_all(fds[0]);
        out->errors = read_all(fds[1]);
        ok = (out->out && out->errors) || err_memory(err, argv[0]);
    }
    close(fds[0]);
    close(fds[1]);
    return ok;
}

static bool run_on(const struct shell_host *host, char *const *argv, struct said *out,
                   struct err *err)
{
    struct err why = { 0 };
    if (shell_run(argv, out, &why))
        return true;
    if (why.kind == ERR_MISSING)
        return err_set(
            err, ERR_MISSING,
            "--on %s: %s not found; run this on %s, or omit --on to run on this computer", host->on,
            argv[0], host->where);
    return err_set(err, why.kind, "%s", why.text);
}

bool shell_ask(const struct shell_host *host, char *const *argv, struct said *out, struct err *err)
{
    struct said own, *said = out ? out : &own;
    if (!run_on(host, argv, said, err))
        return false;
    bool ok =
        said->code == 0 || err_set(err, ERR_MISSING, "--on %s: %s does not respond: %.600s",
                                   host->on, argv[0], said->errors[0] ? said->errors : said->out);
    if (!ok || !out)
        said_free(said);
    return ok;
}

bool shell_submit(const struct shell_host *host, char *const *argv, struct err *err)
{
    struct said said;
    if (!run_on(host, argv, &said, err))
        return false;
    bool ok = said.code == 0 ||
              err_set(err, ERR_MISSING, "%.900s", said.errors[0] ? said.errors : said.out);
    said_free(&said);
    return ok;
}

void said_free(struct said *said)
{
    free(said->out);
    free(said->errors);
    *said = (struct said){ 0 };
}

bool shell_unknown(const char *option, const char *given, char *const *argv, struct err *err)
{
    struct said said = { 0 };
    const char *names[64];
    char all[400] = "?", *rest = NULL;
    size_t n = 0;
    bool known = shell_run(argv, &said, NULL);
    for (char *at = known ? strtok_r(said.out, "\n", &rest) : NULL; at && n < 64; n++)
        names[n] = at, at = strtok_r(NULL, "\n", &rest);
    if (n > 0)
        names_join(names, n, all, sizeof all);
    said_free(&said);
    return err_set(err, ERR_USAGE, "%s: no '%s' here; available: %s", option, given ? given : "",
                   all);
}

void shell_quote(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stream);
        else
            fputc(*text, stream);
    fputc('\'', stream);
}
