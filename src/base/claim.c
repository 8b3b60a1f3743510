/* claim.c: see claim.h. */
#include "base/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/file.h"
#include "base/draft.h"
#include "base/text.h"

struct claim {
    int fd;     /* of the folder, locked; -1: none */
    char *path; /* DIR/.lock; NULL: not written */
    pthread_t beat;
    bool beating;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool ending;
};

/* When a process started, in clock ticks since boot: recognises a new process with a reused number.
 * 0 if there is no such process here, or only a zombie. */
static unsigned long long process_began(long pid)
{
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (!file_read(path, 1 << 16, &text, NULL, NULL))
        return 0;
    const char *at = strrchr(text, ')'); /* the name before may contain anything */
    if (at && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0))
        at = NULL;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    unsigned long long began = at ? strtoull(at, NULL, 10) : 0;
    free(text);
    return began;
}

/* Seconds since the lock was touched, by the clock of its file system. */
static double age_s(const char *folder, const struct stat *lock)
{
    char *path = text_format("%s/.lock", folder), *probe = NULL;
    struct stat now;
    double age = 0;
    int fd = path ? draft_create(path, &probe, NULL) : -1;
    if (fd >= 0 && fstat(fd, &now) == 0)
        age = difftime(now.st_mtime, lock->st_mtime);
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    free(path);
    free(probe);
    return age;
}

bool claim_look(const char *folder, struct claim_holder *out)
{
    *out = (struct claim_holder){ 0 };
    char here[256] = "", *text = NULL, *path = text_format("%s/.lock", folder);
    struct stat status;
    unsigned long long began = 0;
    bool found = path && lstat(path, &status) == 0;
    bool readable =
        found && S_ISREG(status.st_mode) && file_read(path, 4096, &text, NULL, NULL) &&
        sscanf(text, "%255s %ld %llu %31s", out->host, &out->pid, &began, out->since) == 4;
    if (found && !readable) /* damaged, or of another version: alive as long as it is touched */
        *out = (struct claim_holder){ .host = "?", .since = "?" };
    gethostname(here, sizeof here - 1);
    if (readable && strcmp(here, out->host) == 0)
        out->alive = out->pid > 0 && began > 0 && process_began(out->pid) == began;
    else if (found)
        out->alive = age_s(folder, &status) < CLAIM_DEAD_S;
    free(text);
    free(path);
    return found;
}

static void *beat(void *argument)
{
    struct claim *claim = argument;
    pthread_mutex_lock(&claim->mutex);
    while (!claim->ending) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += CLAIM_BEAT_S;
        pthread_cond_timedwait(&claim->ended, &claim->mutex, &until);
        if (!claim->ending)
            utimensat(AT_FDCWD, claim->path, NULL, AT_SYMLINK_NOFOLLOW);
    }
    pthread_mutex_unlock(&claim->mutex);
    return NULL;
}

static void start_beat(struct claim *claim)
{
    sigset_t all, before; /* signals are handled by the main thread */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    claim->beating = pthread_create(&claim->beat, NULL, beat, claim) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Writes our identity to a separate file, then links it to the lock's name, which only one process
 * can do. */
static bool write_lock(struct claim *claim, const char *folder, struct err *err)
{
    char host[256] = "", since[32];
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &parts);
    gethostname(host, sizeof host - 1);
    char *path = text_format("%s/.lock", folder), *own = NULL;
    int fd = path ? draft_create(path, &own, NULL) : -1;
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = true;
    if (!path || (fd >= 0 && !stream)) {
        ok = err_memory(err, folder);
    } else if (stream) {
        fprintf(stream, "%s %ld %llu %s\n", host, (long)getpid(), process_began((long)getpid()),
                since);
        bool wrote = fclose(stream) == 0;
        bool linked = wrote && link(own, path) == 0;
        if (wrote && !linked && errno != EEXIST) /* a file system without links */
            linked = rename(own, path) == 0;
        else if (wrote && !linked)
            ok = err_set(err, ERR_IO,
                         "%s: another run has just started in this folder; wait for it or choose "
                         "another folder",
                         folder);
        unlink(own);
        if (linked) {
            claim->path = path;
            path = NULL;
            start_beat(claim);
        }
    }
    free(path);
    free(own);
    return ok;
}

static bool refuse(const char *folder, const struct claim_holder *holder, struct err *err)
{
    char who[400] = "", gone[64] = "";
    if (holder->pid > 0)
        snprintf(who, sizeof who, " (process %ld on %s, since %s)", holder->pid, holder->host,
                 holder->since);
    if (holder->pid > 0)
        snprintf(gone, sizeof gone, "; if it no longer exists, delete .lock in this folder");
    return err_set(err, ERR_IO,
                   "%.400s: another run is using this folder%s; wait for it, stop it with "
                   "'microtome cancel', or choose another folder%s",
                   folder, who, gone);
}

bool claim_take(const char *folder, struct claim **out, struct err *err)
{
    struct claim *claim = calloc(1, sizeof *claim);
    struct claim_holder holder;
    if (!claim)
        return err_memory(err, folder);
    pthread_mutex_init(&claim->mutex, NULL);
    pthread_cond_init(&claim->ended, NULL);
    claim->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ours = claim->fd < 0 || flock(claim->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    bool found = claim_look(folder, &holder);
    bool ok = ours && !(found && holder.alive);
    if (!ok)
        refuse(folder, &holder, err);
    if (ok && found) {
        char *dead = text_format("%s/.lock", folder);
        if (dead)
            unlink(dead);
        free(dead);
    }
    ok = ok && write_lock(claim, folder, err);
    if (ok)
        *out = claim;
    else
        claim_release(claim);
    return ok;
}

static bool held_elsewhere(const char *folder)
{
    struct claim_holder holder;
    char here[256] = "";
    gethostname(here, sizeof here - 1);
    return claim_look(folder, &holder) && holder.alive && strcmp(here, holder.host) != 0;
}

bool claim_wait(const char *folder, const atomic_bool *stop, struct claim **out, struct err *err)
{
    const struct timespec pause = { 1, 0 };
    for (int waited_s = 0; waited_s <= CLAIM_DEAD_S && held_elsewhere(folder); waited_s++) {
        if (stop && atomic_load(stop))
            return err_stopped(err);
        nanosleep(&pause, NULL);
    }
    return claim_take(folder, out, err);
}

void claim_release(struct claim *claim)
{
    if (!claim)
        return;
    if (claim->beating) {
        pthread_mutex_lock(&claim->mutex);
        claim->ending = true;
        pthread_cond_signal(&claim->ended);
        pthread_mutex_unlock(&claim->mutex);
        pthread_join(claim->beat, NULL);
    }
    if (claim->path)
        unlink(claim->path);
    if (claim->fd >= 0)
        close(claim->fd);
    pthread_mutex_destroy(&claim->mutex);
    pthread_cond_destroy(&claim->ended);
    free(claim->path);
    free(claim);
}
