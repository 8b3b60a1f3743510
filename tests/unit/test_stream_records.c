/* test_stream_records.c: records come back as they were put, wherever they were meanwhile: in
 * memory, in the file, in groups, with a thread or without; a pass may be abandoned anywhere; the
 * file has no name; bad folders, full disks and short files give errors that name the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/file.h"
#include "base/folder.h"
#include "base/rng.h"
#include "net/kernels/half.h"
#include "net/stream/records.h"
#include "support/paths.h"

#define N 60
#define MB ((size_t)1 << 20)

static size_t sizes[N];
static char *folder;

static int setup(void **state)
{
    (void)state;
    folder = scratch_path("strips");
    struct err err;
    struct rng rng = rng_new(3, 1, 0);
    for (int i = 0; i < N; i++) /* up to 200 kB, some empty */
        sizes[i] = i % 13 == 0 ? 0 : 4 * (size_t)(rng_uniform(&rng) * 50000);
    return file_make_folder(folder, &err) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(folder);
    return 0;
}

static struct records_options options_of(size_t memory)
{
    return (struct records_options){ .n = N, .bytes = sizes, .memory = memory, .folder = folder };
}

static size_t total_bytes(void)
{
    size_t total = 0;
    for (int i = 0; i < N; i++)
        total += sizes[i];
    return total;
}

static float number(int pass, int64_t i, size_t k)
{
    return (float)(pass * 1000 + i) + (float)k / 65536;
}

static void must(bool ok, const struct err *err)
{
    if (!ok)
        print_message("%s\n", err->text);
    assert_true(ok);
}

static void fill(struct records *records, int pass, int64_t n)
{
    struct err err;
    for (int64_t i = 0; i < n; i++) {
        void *at;
        must(records_put(records, i, &at, &err), &err);
        for (size_t k = 0; k < sizes[i] / 4; k++)
            ((float *)at)[k] = number(pass, i, k);
    }
}

static float as_kept(float x, bool bf16)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!bf16)
        return x;
    uint32_t odd = bits >> 16 & 1;
    return float_of_bfloat16((uint16_t)((bits + 0x7fff + odd) >> 16));
}

/* Reads every record for which i % step < take, down to `last`. */
static void check(struct records *records, int pass, bool bf16, int64_t step, int64_t take,
                  int64_t last)
{
    struct err err;
    for (int64_t i = N - 1; i >= last; i--) {
        if (i % step >= take)
            continue;
        const void *at;
        must(records_get(records, i, &at, &err), &err);
        for (size_t k = 0; k < sizes[i] / 4; k++)
            if (((const float *)at)[k] != as_kept(number(pass, i, k), bf16))
                fail_msg("record %d, float %zu: %g", (int)i, k, (double)((const float *)at)[k]);
    }
}

static int files_in_folder(void)
{
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void whole_passes(const struct records_options *options)
{
    struct records *records;
    struct err err;
    must(records_new(options, &records, &err), &err);
    struct records_stats stats = records_stats(records);
    assert_int_equal(files_in_folder(), 0);
    for (int pass = 0; pass < 2; pass++) {
        fill(records, pass, N);
        must(records_turn(records, &err), &err);
        check(records, pass, options->bf16, 1, 1, 0);
    }
    fill(records, 2, N);
    must(records_turn(records, &err), &err);
    check(records, 2, options->bf16, 7, 2, 0);
    if (options->memory)
        assert_true(stats.memory <= options->memory);
    assert_true(stats.bytes >= total_bytes() / (options->bf16 ? 2 : 1));
    size_t in_memory = stats.bytes - stats.spilled;
    assert_true(stats.memory >= in_memory);
    assert_int_equal(stats.spilled > 0, stats.groups > 0);
    records_free(records);
}

static void in_memory(void **state)
{
    (void)state;
    struct records_options options = options_of(0);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        options.bf16 = bf16;
        whole_passes(&options);
    }
    options.folder = NULL;
    options.memory = total_bytes() * 2;
    whole_passes(&options);
}

static void spilled(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (int wait = 0; wait < 2; wait++)
            for (int group = 0; group < 3; group++) {
                struct records_options options = options_of(0);
                options.bf16 = bf16, options.wait = wait;
                options.group_bytes = (int64_t[]){ 0, 1, 300000 }[group];
                size_t least = records_least(&options);
                for (size_t memory = least; memory < total_bytes(); memory += 3 * MB) {
                    options.memory = memory;
                    whole_passes(&options);
                }
            }
}

/* The records that were put first are in the file, whatever fits is not. */
static void as_few_as_possible(void **state)
{
    (void)state;
    struct records_options options = options_of(0);
    size_t least = records_least(&options), before = SIZE_MAX;
    for (size_t memory = least; memory < 2 * total_bytes(); memory += MB / 2) {
        struct records *records;
        struct err err;
        options.memory = memory;
        must(records_new(&options, &records, &err), &err);
        struct records_stats stats = records_stats(records);
        assert_true(stats.spilled <= before);
        if (stats.spilled > 0) /* no room for another one and larger groups */
            assert_true(stats.memory + 200000 + memory / 4 > memory);
        before = stats.spilled;
        records_free(records);
    }
    assert_int_equal(before, 0);
}

static void abandoned(void **state)
{
    (void)state;
    for (int wait = 0; wait < 2; wait++)
        for (int64_t upto = 1; upto <= N; upto += 19) {
            struct records_options options = options_of(MB);
            options.wait = wait;
            options.group_bytes = 100000;
            struct records *records;
            struct err err;
            must(records_new(&options, &records, &err), &err);
            fill(records, 1, upto); /* then a new pass */
            fill(records, 2, N);
            must(records_turn(records, &err), &err);
            check(records, 2, false, 1, 1, upto / 2);
            fill(records, 3, N);
            must(records_turn(records, &err), &err);
            check(records, 3, false, 1, 1, 0);
            fill(records, 4, N);
            must(records_turn(records, &err), &err);
            check(records, 4, false, 9, 1, upto / 2);
            records_free(records); /* while the thread reads ahead */
            must(records_new(&options, &records, &err), &err);
            fill(records, 5, upto);
            records_free(records); /* while it writes */
        }
}

static void too_little_memory(void **state)
{
    (void)state;
    struct records_options options = options_of(0);
    options.memory = records_least(&options) - 1;
    struct records *records;
    struct err err = { 0 };
    assert_false(records_new(&options, &records, &err));
    assert_int_equal(err.kind, ERR_MEMORY);
    assert_non_null(strstr(err.text, "need at least"));
    options.memory++;
    must(records_new(&options, &records, &err), &err);
    records_free(records);
    options.folder = NULL;
    assert_true(records_least(&options) >= total_bytes());
    assert_false(records_new(&options, &records, &err));
    assert_non_null(strstr(err.text, "train.spill"));
    options.memory = records_least(&options);
    must(records_new(&options, &records, &err), &err);
    records_free(records);
}

static void bad_folders(void **state)
{
    (void)state;
    char *program = source_path("CMakeLists.txt");
    const char *names[] = { "/no/such/folder", program, "/proc" };
    for (int i = 0; i < 6; i++) { /* also where nothing is spilled */
        struct records_options options = options_of(i < 3 ? MB : 0);
        options.folder = names[i % 3];
        struct records *records;
        struct err err = { 0 };
        assert_false(records_new(&options, &records, &err));
        assert_int_equal(err.kind, ERR_IO);
        assert_non_null(strstr(err.text, names[i % 3]));
        assert_non_null(strstr(err.text, "train.spill"));
    }
    free(program);
}

static void limit_files(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Until the error of a transfer comes out. */
static bool a_pass(struct records *records, struct err *err)
{
    void *at;
    const void *got;
    for (int64_t i = 0; i < N; i++)
        if (!records_put(records, i, &at, err))
            return false;
    if (!records_turn(records, err))
        return false;
    for (int64_t i = N - 1; i >= 0; i--)
        if (!records_get(records, i, &got, err))
            return false;
    return true;
}

static void full_disk(void **state)
{
    (void)state;
    struct records_options options = options_of(MB);
    struct records *records;
    struct err err = { 0 };
    must(records_new(&options, &records, &err), &err); /* takes no space */
    limit_files(2 * MB);                               /* found when the space is reserved */
    void *at;
    assert_false(records_put(records, 0, &at, &err));
    limit_files(RLIM_INFINITY);
    must(a_pass(records, &err), &err);
    records_free(records);
    assert_non_null(strstr(err.text, "cannot reserve"));
    assert_non_null(strstr(err.text, "free space there, choose another folder"));
    assert_non_null(strstr(err.text, folder));
    for (int wait = 0; wait < 2; wait++) { /* or later */
        options.wait = wait;
        must(records_new(&options, &records, &err), &err);
        must(a_pass(records, &err), &err);
        limit_files(MB);
        assert_false(a_pass(records, &err));
        assert_false(records_turn(records, &err) &&
                     records_get(records, 0, &(const void *){ 0 }, &err));
        limit_files(RLIM_INFINITY);
        assert_int_equal(err.kind, ERR_IO);
        assert_non_null(strstr(err.text, "cannot write strips"));
        assert_non_null(strstr(err.text, folder));
        must(a_pass(records, &err), &err); /* the next pass is another attempt */
        records_free(records);
    }
}

/* Of the file without a name in the folder; -1: none. */
static int file_of_strips(void)
{
    for (int fd = 3; fd < 256; fd++) {
        char link[64], target[4096] = { 0 };
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof target - 1) > 0 && strstr(target, folder) == target &&
            strstr(target, "(deleted)"))
            return fd;
    }
    return -1;
}

static void short_file(void **state)
{
    (void)state;
    struct records_options options = options_of(MB);
    options.wait = true; /* or writing behind would make it longer again */
    struct records *records;
    struct err err = { 0 };
    must(records_new(&options, &records, &err), &err);
    fill(records, 0, N);
    must(records_turn(records, &err), &err);
    check(records, 0, false, 1, 1, N - 2);
    int fd = file_of_strips();
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    const void *at;
    bool ok = true;
    for (int64_t i = N - 3; ok && i >= 0; i--)
        ok = records_get(records, i, &at, &err);
    assert_false(ok);
    assert_int_equal(err.kind, ERR_IO);
    assert_non_null(strstr(err.text, folder));
    assert_non_null(strstr(err.text, "ends after"));
    records_free(records);
}

/* In the middle of a pass. */
static void killed(void **state)
{
    (void)state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct records_options options = options_of(MB);
        struct records *records;
        if (records_new(&options, &records, NULL)) {
            fill(records, 0, N / 2);
            if (write(ready[1], "x", 1) == 1)
                pause();
        }
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(files_in_folder(), 0);
    close(ready[0]), close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(spilled),
        cmocka_unit_test(as_few_as_possible),
        cmocka_unit_test(abandoned),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(bad_folders),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(short_file),
        cmocka_unit_test(killed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
