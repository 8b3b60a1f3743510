/* identity.c: see identity.h. */
#include "base/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (INT64_C(64) << 10)
#define SAMPLES 10 /* chunks from beginning to end */

uint64_t identity_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Hashes up to CHUNK_BYTES from `offset`; *n is the number of bytes read. */
static bool hash_chunk(int fd, const char *path, int64_t offset, uint64_t *hash, int64_t *n,
                       struct err *err)
{
    unsigned char chunk[CHUNK_BYTES];
    ssize_t got;
    for (*n = 0; *n < CHUNK_BYTES; *n += got) {
        got = pread(fd, chunk + *n, (size_t)(CHUNK_BYTES - *n), (off_t)(offset + *n));
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got < 0)
            return err_errno(err, path, "read");
        else if (got == 0)
            break;
    }
    *hash = identity_hash(*hash, chunk, (size_t)*n);
    return true;
}

/* step: from the beginning of a chunk to that of the next. */
static bool hash_chunks(int fd, const char *path, int64_t bytes, int64_t step, uint64_t *hash,
                        struct err *err)
{
    bool ok = true;
    for (int64_t at = 0, n; ok && at < bytes; at += step)
        ok = hash_chunk(fd, path, at, hash, &n, err);
    if (ok && step > CHUNK_BYTES) {
        int64_t n;
        ok = hash_chunk(fd, path, bytes - CHUNK_BYTES, hash, &n, err);
    }
    return ok;
}

static bool identify(const char *path, bool sampled, struct identity *out, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_errno(err, path, "open");
    bool ok = fstat(fd, &status) == 0 || err_errno(err, path, "look at");
    if (ok && !S_ISREG(status.st_mode))
        ok = err_set(err, ERR_FORMAT, "%s: is not a regular file", path);
    if (ok) {
        int64_t bytes = (int64_t)status.st_size;
        bool whole = !sampled || bytes <= IDENTITY_SAMPLE_BYTES;
        *out = (struct identity){ .bytes = bytes, .hash = IDENTITY_HASH_BEGIN };
        ok = hash_chunks(fd, path, bytes, whole ? CHUNK_BYTES : bytes / SAMPLES, &out->hash, err);
    }
    close(fd);
    return ok;
}

bool identity_of_file(const char *path, struct identity *out, struct err *err)
{
    return identify(path, false, out, err);
}

bool identity_of_sample(const char *path, struct identity *out, struct err *err)
{
    return identify(path, true, out, err);
}

void inputs_add(char line[INPUTS_ROOM], const char *kind, const struct identity *identity)
{
    size_t used = strlen(line);
    snprintf(line + used, INPUTS_ROOM - used, "%s%s=%" PRId64 ":%016" PRIx64, used ? " " : "", kind,
             identity->bytes, identity->hash);
}

/* The value of a kind in a line: "4321:0123456789abcdef", or "" with length 0. */
static const char *value_of(const char *line, const char *kind, size_t length, size_t *n)
{
    while (*(line += strspn(line, " "))) {
        size_t word = strcspn(line, " ");
        if (word > length && line[length] == '=' && strncmp(line, kind, length) == 0) {
            *n = word - length - 1;
            return line + length + 1;
        }
        line += word;
    }
    *n = 0;
    return "";
}

/* "4321 bytes, hash 0123456789abcdef" of a value. */
static const char *in_words(const char *value, size_t n, char *text, size_t room)
{
    const char *colon = memchr(value, ':', n);
    if (!colon)
        snprintf(text, room, "none");
    else
        snprintf(text, room, "%.*s bytes, hash %.*s", (int)(colon - value), value,
                 (int)(value + n - colon - 1), colon + 1);
    return text;
}

/* The first word of line `a` that differs from that of `b`; false if there is none. */
static bool first_other(const char *a, const char *b, const char **kind, size_t *length)
{
    while (*(a += strspn(a, " "))) {
        size_t word = strcspn(a, " "), n, n_other;
        *kind = a;
        *length = strcspn(a, "= ");
        const char *value = value_of(a, a, *length, &n);
        const char *other = value_of(b, a, *length, &n_other);
        if (n != n_other || strncmp(value, other, n) != 0)
            return true;
        a += word;
    }
    return false;
}

/* The first input that differs: its kind, and both identities in words. False if there is none. */
static bool differ(const char *then, const char *now, char kind[32], char text[200])
{
    const char *word;
    size_t length, n_then, n_now;
    char was[80], is[80];
    if (!first_other(then, now, &word, &length) && !first_other(now, then, &word, &length))
        return false;
    const char *value_then = value_of(then, word, length, &n_then);
    const char *value_now = value_of(now, word, length, &n_now);
    snprintf(kind, 32, "%.*s", (int)length, word);
    snprintf(text, 200, "then %s; now %s", in_words(value_then, n_then, was, sizeof was),
             in_words(value_now, n_now, is, sizeof is));
    return true;
}

bool inputs_check(const char *result, const char *then, const char *now, struct err *err)
{
    char kind[32], text[200];
    if (!*then)
        return err_set(err, ERR_USAGE,
                       "%.500s: does not record which files it was made from (written by an older "
                       "version); pass --overwrite or another -o folder",
                       result);
    return !differ(then, now, kind, text) ||
           err_set(
               err, ERR_USAGE,
               "%.500s: was made from a different %s (%s); pass --overwrite or another -o folder",
               result, kind, text);
}

bool inputs_hold(const char *name, const char *then, const char *now, const char *remedy,
                 struct err *err)
{
    char kind[32], text[200];
    return !differ(then, now, kind, text) ||
           err_set(err, ERR_FORMAT, "%.500s: the %s changed since the run started (%s); %s", name,
                   kind, text, remedy);
}
