/* child.c: see child.h. */
#include "tests/fuzz/child.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"

enum { TAKEN = 0, REFUSED = 77, FOREIGN = 78, FRAMES = 128 };

/* Of the sanitizers, where there are any: called before a process that they find fault with ends.
 */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

long fuzz_foreign_crashes;
static const char *blamed;

/* Ends the child if the library is on the stack. */
static void judge(void)
{
    void *frames[FRAMES];
    int n = backtrace(frames, FRAMES);
    for (int i = 0; i < n; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_fname && strstr(info.dli_fname, blamed))
            _exit(FOREIGN);
    }
}

static void on_signal(int number)
{
    judge();
    signal(number, SIG_DFL);
    raise(number);
}

static void run_child(void (*attempt)(void *arg), void *arg, const char *library)
{
    static const int deadly[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM };
    void *first;
    blamed = library;
    backtrace(&first, 1); /* loads what it needs while all is well */
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(judge);
    alarm(60);
    long before = fuzz_taken;
    attempt(arg);
    _exit(fuzz_taken > before ? TAKEN : REFUSED);
}

void fuzz_in_child(void (*attempt)(void *arg), void *arg, const char *library)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(attempt, arg, library);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return;
    fuzz_taken += WIFEXITED(status) && WEXITSTATUS(status) == TAKEN;
    fuzz_foreign_crashes += WIFEXITED(status) && WEXITSTATUS(status) == FOREIGN;
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != TAKEN && WEXITSTATUS(status) != REFUSED &&
                               WEXITSTATUS(status) != FOREIGN))
        abort();
}
