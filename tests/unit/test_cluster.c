/* test_cluster.c: task lists, jobs of equal cost, records, site files, times and locks. What real
 * schedulers make of it is tested in tests/cluster. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/rng.h"
#include "cluster/pack.h"
#include "cluster/scheduler.h"
#include "cluster/shell.h"
#include "cluster/tasks.h"
#include "support/cohort.h"
#include "base/text.h"

static void make_list(const char *folder, int64_t n, struct task_list *list)
{
    char *const argv[] = { "microtome", "squares", "-o", "a folder, \"quoted\"" };
    struct err err = { 0 };
    assert_true(list_new(folder, "squares", 4, argv, list, &err));
    for (int64_t i = 0; i < n; i++) {
        char slide[32], file[32];
        snprintf(slide, sizeof slide, "slide,%lld", (long long)(i / 3));
        snprintf(file, sizeof file, "out/%lld.txt", (long long)i);
        assert_true(list_add(list, slide, i % 3, (double)(i * 7 % 5 + 1), file, "", "", &err));
    }
}

static void test_list(void **state)
{
    (void)state;
    char *folder = cohort_folder("cluster_list");
    struct task_list list, back;
    struct task_record record = {
        .state = TASK_FAILED, .attempts = 2, .cpu_s = 12.5, .error = "no \"room\"\n"
    };
    struct err err = { 0 };
    make_list(folder, 10, &list);
    assert_true(list_write(&list, &err));
    assert_true(list_read(folder, &back, &err));
    assert_int_equal(back.n, 10);
    assert_int_equal(back.argc, 4);
    assert_string_equal(back.argv[3], list.argv[3]);
    assert_string_equal(back.items[7].slide, "slide,2");
    assert_int_equal(back.items[7].part, 1);
    assert_true(back.items[7].cost == list.items[7].cost);
    assert_true(record_write(&list, 3, &record, &err));
    assert_true(list_write(&list, &err)); /* the same tasks: records stay */
    record_read(&list, 3, &record);
    assert_int_equal(record.attempts, 2);
    assert_true(record.cpu_s == 12.5);
    assert_string_equal(record.error, "no \"room\"\n");
    list_free(&back);
    assert_true(list_add(&list, "more", 0, 1, "more", "", "", &err));
    assert_true(list_write(&list, &err)); /* other tasks: numbers mean something else now */
    record_read(&list, 3, &record);
    assert_int_equal(record.state, TASK_LEFT);
    list_free(&list);
    free(folder);
}

/* A list that would write outside of its folder, or lacks a row, is refused. */
static void test_list_damaged(void **state)
{
    (void)state;
    static const char *const rows[] = { "1,s,0,1,../x,\n", "1,s,0,1,/x,\n", "1,s,0,1,x,../y\n",
                                        "2,s,0,1,x,\n", "1,s,0,much,x,\n" };
    char *folder = cohort_folder("cluster_damaged");
    struct task_list list, back;
    struct err err = { 0 };
    make_list(folder, 1, &list);
    assert_true(list_write(&list, &err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = text_format("%s/tasks/list.csv", folder);
        FILE *stream = fopen(path, "w");
        assert_non_null(stream);
        fprintf(stream, "task,slide,part,cost,file,whole\n%s", rows[i]);
        fclose(stream);
        free(path);
        assert_false(list_read(folder, &back, &err));
        assert_int_equal(err.kind, ERR_FORMAT);
        list_free(&back);
    }
    list_free(&list);
    free(folder);
}

static double load_of(const struct task_list *list, const struct packed *packed, int64_t job)
{
    double load = 0;
    for (int64_t i = packed->first[job]; i < packed->first[job + 1]; i++)
        load += list->items[packed->ids[i] - 1].cost;
    return load;
}

/* Every task once; the heaviest job within 4/3 of the best possible, as Graham proved; the heaviest
 * first; those that must go alone do. */
static void test_pack(void **state)
{
    (void)state;
    struct task_list list = { 0 };
    struct err err = { 0 };
    enum { N = 500, JOBS = 7 };
    int64_t ids[N];
    bool alone[N] = { false }, seen[N + 1] = { false };
    double total = 0;
    for (int64_t i = 0; i < N; i++) {
        struct rng rng = rng_new(5, 0, (uint64_t)i);
        assert_true(list_add(&list, "s", i, 1 + 99 * rng_uniform(&rng), "f", "", "", &err));
        ids[i] = i + 1;
        alone[i] = i % 100 == 3;
        total += alone[i] ? 0 : list.items[i].cost;
    }
    struct packed packed;
    assert_true(pack_tasks(&list, ids, N, alone, JOBS, &packed, &err));
    assert_int_equal(packed.n_jobs, JOBS + 5);
    for (int64_t job = 0; job < packed.n_jobs; job++) {
        int64_t n = packed.first[job + 1] - packed.first[job];
        assert_true(n >= 1);
        bool single = alone[packed.ids[packed.first[job]] - 1];
        assert_true(!single || n == 1);
        assert_true(single || load_of(&list, &packed, job) <= total / JOBS * 4 / 3);
        assert_true(job == 0 ||
                    load_of(&list, &packed, job) <= load_of(&list, &packed, job - 1) + 1e-9);
        for (int64_t i = packed.first[job]; i < packed.first[job + 1]; i++) {
            assert_false(seen[packed.ids[i]]);
            seen[packed.ids[i]] = true;
        }
    }
    assert_int_equal(packed.first[packed.n_jobs], N);
    packed_free(&packed);
    list_free(&list);
}

/* --- running: a task writes the square of its number; task 5 cannot --- */

struct squares_options {
    int64_t factor;
    const char *output;
};

static bool squares_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    (void)ctx, (void)err;
    *(int64_t *)given->state = ((const struct squares_options *)given->options)->factor;
    return true;
}

static bool squares_run(const struct task_given *given, const struct task *task, const char *path,
                        const struct ctx *ctx, struct err *err)
{
    (void)ctx;
    struct file_out out;
    int64_t *factor = given->state;
    if (task->id == 5)
        return err_set(err, ERR_FORMAT, "five is out");
    if (!file_out_open(&out, path, err))
        return false;
    fprintf(out.stream, "%lld", (long long)(*factor * task->id * task->id));
    return file_out_commit(&out, err);
}

static bool squares_finish(const struct task_given *given, const struct task_end *ends,
                           const struct ctx *ctx, FILE *out, struct err *err)
{
    (void)ctx, (void)err;
    for (int64_t i = 0; i < given->list->n; i++)
        if (ends[i].error)
            fprintf(out, "%lld: %s\n", (long long)i + 1, ends[i].error);
    return true;
}

static const struct arg squares_args[] = {
    { .name = "factor",
      .type = ARG_INT,
      .offset = offsetof(struct squares_options, factor),
      .initial = "3" },
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = offsetof(struct squares_options, output) },
};
static const struct args_spec squares_command = {
    .name = "squares", .operands = "", .args = squares_args, .n_args = 2
};
static const struct task_kind squares = { .command = &squares_command,
                                          .options_size = sizeof(struct squares_options),
                                          .state_size = sizeof(int64_t),
                                          .open = squares_open,
                                          .run = squares_run,
                                          .finish = squares_finish };

static void test_tasks(void **state)
{
    (void)state;
    char *folder = cohort_folder("cluster_tasks");
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct task_list list;
    struct task_record record;
    struct task_job job = { .log = "", .submission = "mt1" };
    struct err err = { 0 };
    const int64_t some[] = { 7, 5, 2 }, wrong[] = { 10 };
    bool good = true;
    char text[900], printed[200] = "";
    make_list(folder, 9, &list);
    assert_true(list_write(&list, &err));
    assert_false(tasks_run(&list, &squares, wrong, 1, &job, &ctx, &err));
    assert_false(tasks_run(&list, &squares, some, 3, &job, &ctx, &err)); /* 5 fails, 2 goes on */
    assert_true(task_complete(&list, &list.items[6]));
    assert_true(task_complete(&list, &list.items[1]));
    assert_false(task_complete(&list, &list.items[4]));
    char *file = task_path(&list, &list.items[6]), *made = NULL;
    assert_true(file_read(file, 100, &made, NULL, &err));
    assert_string_equal(made, "147"); /* with the option of the list's command line */
    free(made);
    free(file);
    record_read(&list, 5, &record);
    assert_int_equal(record.state, TASK_FAILED);
    assert_string_equal(record.error, "five is out");
    FILE *out = fmemopen(printed, sizeof printed, "w");
    assert_false(tasks_finish(&list, &squares, "mt1", &ctx, out, &err));
    fclose(out);
    assert_non_null(strstr(err.text, "7 of 9 tasks have no result"));
    assert_non_null(strstr(printed, "5: five is out"));
    assert_true(tasks_finished(&list, "mt1", &good, text));
    assert_false(good);
    assert_false(tasks_finished(&list, "mt2", &good, text)); /* the next one's end is to come */
    assert_string_equal(record.submission, "mt1");
    list_free(&list);
    pool_free(pool);
    free(folder);
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } good[] = { { "90s", 90 },           { "30m", 1800 },    { "2h", 7200 },
                 { "1d", 86400 },         { "00:01:30", 90 }, { "100:00:00", 360000 },
                 { "2-03:04:05", 183845 } };
    static const char *const bad[] = {
        "",          "5",  "5x",  "-5m",  "1:60:00",         "1:2:3x",
        "99999999d", "0s", "1-2", "soon", "213503982334602d"
    }; /* times 86,400: 2^64 + 61,184 */
    int64_t seconds;
    char text[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(time_parse(good[i].text, &seconds, NULL));
        assert_int_equal(seconds, good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(time_parse(bad[i], &seconds, NULL));
    time_print(183845, text);
    assert_string_equal(text, "51:04:05");
}

/* A job of 100 s whose task was stopped after 99: out of time; after 10: told to stop. */
static void test_out_of_time(void **state)
{
    (void)state;
    struct task_record record = {
        .state = TASK_STOPPED, .job_began = 1000, .limit_s = 100, .ended = 1099
    };
    assert_true(record_out_of_time(&record));
    record.ended = 1010;
    assert_false(record_out_of_time(&record));
    record.limit_s = 0;
    assert_false(record_out_of_time(&record));
}

static void test_site(void **state)
{
    (void)state;
    static const char text[] =
        "modules: [gcc/12, openmpi]\nsetup: export A=1\ncontainer: apptainer "
        "exec x.sif\n";
    static const char *const bad[] = {
        "modules: {a: b}\n", "module: x\n",         "- a\n", "a: [\n",
        "container: [a]\n",  "setup: [\"a\\nb\"]\n"
    };
    struct site site;
    struct err err = { 0 };
    assert_true(site_parse(text, sizeof text - 1, "site.yaml", &site, &err));
    assert_int_equal(site.modules.n, 2);
    assert_string_equal(site.modules.items[1], "openmpi");
    assert_string_equal(site.setup.items[0], "export A=1");
    assert_string_equal(site.container, "apptainer exec x.sif");
    assert_string_equal(site.parallel_environment, "smp");
    site_free(&site);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(site_parse(bad[i], strlen(bad[i]), "site.yaml", &site, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_non_null(strstr(err.text, "site.yaml:"));
        site_free(&site);
    }
}

/* host NULL: an empty file. */
static void write_lock(const char *folder, const char *host, long pid, time_t touched)
{
    char *path = text_format("%s/.lock", folder);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    if (host)
        fprintf(stream, "%s %ld 12345 2026-01-01T00:00:00Z\n", host, pid);
    fclose(stream);
    struct timespec times[2] = { { touched, 0 }, { touched, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

/* A lock that cannot be understood (cut off on a full disk, of another version) keeps others out
 * only as long as someone touches it. */
static void test_claim_damaged(void **state)
{
    (void)state;
    char *folder = cohort_folder("cluster_claim_damaged");
    struct claim *claim = NULL;
    struct err err = { 0 };
    write_lock(folder, NULL, 0, time(NULL));
    assert_false(claim_take(folder, &claim, &err));
    assert_non_null(strstr(err.text, "another run is using this folder"));
    write_lock(folder, NULL, 0, time(NULL) - 2 * CLAIM_DEAD_S);
    if (!claim_take(folder, &claim, &err))
        fail_msg("%s", err.text);
    claim_release(claim);
    free(folder);
}

static void test_claim(void **state)
{
    (void)state;
    char *folder = cohort_folder("cluster_claim"), here[256] = "";
    struct claim *claim = NULL, *second = NULL;
    struct claim_holder holder;
    struct err err = { 0 };
    gethostname(here, sizeof here - 1);
    assert_false(claim_look(folder, &holder));
    assert_true(claim_take(folder, &claim, &err));
    assert_true(claim_look(folder, &holder));
    assert_true(holder.alive);
    assert_int_equal(holder.pid, getpid());
    assert_false(claim_take(folder, &second, &err));
    assert_non_null(strstr(err.text, "another run is using this folder (process"));
    claim_release(claim);
    assert_false(claim_look(folder, &holder));

    write_lock(folder, here, getpid(), time(NULL)); /* our number, but of another process */
    assert_true(claim_take(folder, &claim, &err));
    claim_release(claim);
    write_lock(folder, "elsewhere", 1, time(NULL)); /* another host touched it just now */
    assert_false(claim_take(folder, &claim, &err));
    assert_non_null(strstr(err.text, "elsewhere"));
    write_lock(folder, "elsewhere", 1, time(NULL) - 2 * CLAIM_DEAD_S);
    assert_true(claim_take(folder, &claim, &err));
    claim_release(claim);
    free(folder);
}

/* A process that is killed leaves its lock file; the next run takes over. */
/* Of a host that was lost 298 s ago: a job that is begun again waits until its lock is dead. */
static void test_claim_wait(void **state)
{
    (void)state;
    char *folder = cohort_folder("cluster_claim_wait");
    struct claim *claim = NULL;
    struct err err = { 0 };
    atomic_bool stop = true;
    write_lock(folder, "elsewhere", 1, time(NULL) - CLAIM_DEAD_S + 2);
    assert_false(claim_wait(folder, &stop, &claim, &err));
    assert_int_equal(err.kind, ERR_STOPPED);
    assert_false(claim_take(folder, &claim, &err));
    assert_true(claim_wait(folder, NULL, &claim, &err));
    claim_release(claim);
    free(folder);
}

static void test_claim_killed(void **state)
{
    (void)state;
    char *folder = cohort_folder("cluster_claim_killed");
    struct claim *claim = NULL;
    struct claim_holder holder;
    pid_t child = fork();
    if (child == 0) {
        claim_take(folder, &claim, NULL);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(claim_look(folder, &holder));
    assert_false(holder.alive);
    assert_true(claim_take(folder, &claim, NULL));
    claim_release(claim);
    free(folder);
}

/* Where there is no room for a second descriptor the first is closed. */
static void test_shell_descriptors(void **state)
{
    (void)state;
    struct rlimit limit, tight;
    struct said said = { 0 };
    struct err err = { 0 };
    int next = dup(0);
    assert_true(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    tight = limit;
    tight.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    bool ran = shell_run((char *[]){ "true", NULL }, &said, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_false(ran);
    int again = dup(0);
    assert_int_equal(again, next);
    close(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),          cmocka_unit_test(test_list_damaged),
        cmocka_unit_test(test_pack),          cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_times),         cmocka_unit_test(test_out_of_time),
        cmocka_unit_test(test_site),          cmocka_unit_test(test_claim),
        cmocka_unit_test(test_claim_wait),    cmocka_unit_test(test_claim_killed),
        cmocka_unit_test(test_claim_damaged), cmocka_unit_test(test_shell_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
