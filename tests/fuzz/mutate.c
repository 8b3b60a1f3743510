/* mutate.c: runs a fuzz target on mutated seeds without libFuzzer, so that every build (and the
 * sanitizers) tries bad input: FUZZ_TARGET SEED_FOLDER ROUNDS. Mutations are keyed by the round,
 * so a failure repeats: when the process dies, the last round begun is printed and its input is
 * kept as SCRATCH/fuzz-died-<round>. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/rng.h"
#include "tests/fuzz/child.h"
#include "base/text.h"

#define MAX_SEEDS 256
#define MAX_SEED_BYTES ((size_t)1 << 20)

struct seed {
    char *bytes;
    size_t size;
};

static volatile long round_now;
static const char *input_now;
static size_t input_size;
static char folder[512];

static void on_crash(int number)
{
    char text[64], path[600];
    int length = snprintf(text, sizeof text, "died in round %ld\n", round_now);
    snprintf(path, sizeof path, "%s/fuzz-died-%ld", folder, round_now);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (write(STDERR_FILENO, text, (size_t)length) < 0 || write(fd, input_now, input_size) < 0)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

static size_t read_seeds(const char *place, struct seed *seeds)
{
    DIR *listing = opendir(place);
    size_t n = 0;
    struct dirent *entry;
    while (listing && n < MAX_SEEDS && (entry = readdir(listing))) {
        if (entry->d_name[0] == '.')
            continue;
        char *path = text_format("%s/%s", place, entry->d_name);
        if (path && file_read(path, MAX_SEED_BYTES, &seeds[n].bytes, &seeds[n].size, NULL))
            n++;
        free(path);
    }
    if (listing)
        closedir(listing);
    return n;
}

/* Flips, overwrites, cuts, repeats, or splices in a piece of another seed. Returns the new size;
 * work has room for twice the largest seed. */
static size_t mutate_once(char *work, size_t size, const struct seed *other, struct rng *rng)
{
    static const char *const words[] = { "-1",      "0",    "NaN", "1e999", "4294967296", "\"",
                                         "\\u0000", "<!--", "&a;", "]]>",   "\xff\xfe",   "{}" };
    if (size == 0)
        return 0;
    size_t at = rng_below(rng, size);
    size_t length = 1 + rng_below(rng, size - at);
    switch (rng_below(rng, 6)) {
    case 0:
        work[at] ^= (char)(1 << rng_below(rng, 8));
        return size;
    case 1:
        work[at] = (char)rng_u32(rng);
        return size;
    case 2: /* cut a piece out */
        memmove(work + at, work + at + length, size - at - length);
        return size - length;
    case 3: /* cut the end off */
        return at;
    case 4: { /* a nasty word */
        const char *word = words[rng_below(rng, sizeof words / sizeof *words)];
        size_t n = strlen(word) < size - at ? strlen(word) : size - at;
        memcpy(work + at, word, n);
        return size;
    }
    default: { /* a piece of another seed */
        size_t from = other->size ? rng_below(rng, other->size) : 0;
        size_t n = other->size - from < size - at ? other->size - from : size - at;
        memcpy(work + at, other->bytes + from, n);
        return size;
    }
    }
}

int main(int argc, char **argv)
{
    static struct seed seeds[MAX_SEEDS];
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    size_t n = argc > 1 ? read_seeds(argv[1], seeds) : 0;
    if (n == 0 || rounds < 1) {
        fprintf(stderr, "usage: %s SEED_FOLDER ROUNDS (no seeds found)\n", argv[0]);
        return 2;
    }
    snprintf(folder, sizeof folder, "%s", getenv("SCRATCH") ? getenv("SCRATCH") : ".");
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    for (round_now = 0; round_now < rounds; round_now++) {
        struct rng rng = rng_new(1, 0, (uint64_t)round_now);
        bool as_it_is = round_now < (long)n; /* first all seeds, not mutated */
        const struct seed *seed = &seeds[as_it_is ? (uint64_t)round_now : rng_below(&rng, n)];
        char *work = malloc(seed->size + 1);
        if (!work)
            return 1;
        memcpy(work, seed->bytes, seed->size);
        size_t size = seed->size;
        for (uint64_t i = as_it_is ? 0 : 1 + rng_below(&rng, 8); i > 0; i--)
            size = mutate_once(work, size, &seeds[rng_below(&rng, n)], &rng);
        char *exact =
            malloc(size ? size : 1); /* exactly as large as the data: overreads are seen */
        if (!exact)
            return 1;
        memcpy(exact, work, size);
        input_now = exact, input_size = size;
        LLVMFuzzerTestOneInput((const uint8_t *)exact, size);
        free(exact);
        free(work);
        if (round_now + 1 == (long)n && fuzz_taken == 0) {
            fprintf(stderr, "none of %zu seeds was taken: the target tries nothing\n", n);
            return 1;
        }
    }
    printf("%ld rounds on %zu seeds, %ld inputs were taken\n", rounds, n, fuzz_taken);
    if (fuzz_foreign_crashes > 0)
        printf("%ld inputs made a library crash\n", fuzz_foreign_crashes);
    for (size_t i = 0; i < n; i++)
        free(seeds[i].bytes);
    return 0;
}
