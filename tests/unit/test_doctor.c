/* test_doctor.c: what doctor finds: the limits of containers in both versions of control groups,
 * the state of a folder, and that every finding says what it means and what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/file.h"
#include "doctor/doctor.h"
#include "support/cohort.h"
#include "base/text.h"

static void put(const char *root, const char *folder, const char *name, const char *text)
{
    struct err err = { 0 };
    char *path = text_format("%s%s", root, folder);
    assert_true(file_make_folder(path, &err));
    free(path);
    path = text_format("%s%s/%s", root, folder, name);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
    free(path);
}

static const struct doctor_finding *find(const struct doctor_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static void control_groups_version_2(void **state)
{
    (void)state;
    char *root = cohort_folder("doctor_v2");
    assert_true(doctor_cpu_quota(root) == 0); /* nothing there */
    assert_true(doctor_memory_limit(root) == 0);
    put(root, "/sys/fs/cgroup", "cpu.max", "150000 100000\n");
    put(root, "/sys/fs/cgroup", "memory.max", "1073741824\n");
    assert_true(doctor_cpu_quota(root) == 1.5);
    assert_true(doctor_memory_limit(root) == 1073741824.0);
    put(root, "/sys/fs/cgroup", "cpu.max", "max 100000\n");
    put(root, "/sys/fs/cgroup", "memory.max", "max\n");
    assert_true(doctor_cpu_quota(root) == 0);
    assert_true(doctor_memory_limit(root) == 0);
    put(root, "/sys/fs/cgroup", "cpu.max", "nonsense");
    assert_true(doctor_cpu_quota(root) == 0);
    free(root);
}

static void control_groups_version_1(void **state)
{
    (void)state;
    char *root = cohort_folder("doctor_v1");
    put(root, "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000\n");
    put(root, "/sys/fs/cgroup/cpu", "cpu.cfs_period_us", "100000\n");
    put(root, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(doctor_cpu_quota(root) == 0.5);
    assert_true(doctor_memory_limit(root) == 0);
    put(root, "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "-1\n");
    assert_true(doctor_cpu_quota(root) == 0);
    free(root);
}

static void a_tight_container_is_noted_with_its_remedy(void **state)
{
    (void)state;
    char *root = cohort_folder("doctor_tight");
    put(root, "/sys/fs/cgroup", "cpu.max", "50000 100000\n");
    put(root, "/sys/fs/cgroup", "memory.max", "500000000\n");
    put(root, "/proc", "meminfo", "MemTotal:  8000000 kB\nMemAvailable:  7000000 kB\n");
    put(root, "/proc", "cpuinfo", "processor : 0\nmodel name\t: Abacus 9000\n");
    struct doctor_list list;
    struct err err = { 0 };
    assert_true(doctor_examine(root, root, &list, &err));
    const struct doctor_finding *found = find(&list, "container");
    assert_non_null(found);
    assert_int_equal(found->state, DOCTOR_NOTE);
    assert_string_equal(found->remedy, "pass --threads 1");
    found = find(&list, "memory");
    assert_int_equal(found->state, DOCTOR_NOTE);
    assert_non_null(strstr(found->fact, "may use 0.5 GB"));
    assert_true(found->remedy[0] != '\0');
    assert_non_null(strstr(find(&list, "processors")->fact, "Abacus 9000"));
    assert_false(doctor_broken(&list));
    doctor_free(&list);
    free(root);
}

static void every_finding_means_something(void **state)
{
    (void)state;
    struct doctor_list list;
    struct err err = { 0 };
    assert_true(doctor_examine(".", "", &list, &err));
    static const char *const expected[] = { "OpenSlide",  "HDF5",         "oneDNN",     "trial",
                                            "processors", "instructions", "memory",     "disk",
                                            "MPI",        "SLURM",        "Grid Engine" };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_non_null(find(&list, expected[i]));
    for (size_t i = 0; i < list.n; i++) {
        assert_true(list.items[i].fact[0] && list.items[i].meaning[0]);
        assert_true(list.items[i].state == DOCTOR_OK || list.items[i].remedy[0]);
    }
    assert_false(doctor_broken(&list));
    doctor_free(&list);
}

static void a_folder_that_is_not_there_is_broken(void **state)
{
    (void)state;
    struct doctor_list list;
    struct err err = { 0 };
    assert_true(doctor_examine("/no/such/folder", "", &list, &err));
    assert_int_equal(find(&list, "disk")->state, DOCTOR_BROKEN);
    assert_true(doctor_broken(&list));
    doctor_free(&list);
}

static void without_a_path_nothing_is_found(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH"));
    assert_non_null(path);
    assert_int_equal(setenv("PATH", "/no/such/folder:", 1), 0);
    struct doctor_list list;
    struct err err = { 0 };
    assert_true(doctor_examine(".", "", &list, &err));
    assert_int_equal(find(&list, "SLURM")->state, DOCTOR_NOTE);
    assert_string_equal(find(&list, "SLURM")->fact, "not found");
    assert_false(doctor_broken(&list)); /* a laptop has no scheduler */
    doctor_free(&list);
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_groups_version_2),
        cmocka_unit_test(control_groups_version_1),
        cmocka_unit_test(a_tight_container_is_noted_with_its_remedy),
        cmocka_unit_test(every_finding_means_something),
        cmocka_unit_test(a_folder_that_is_not_there_is_broken),
        cmocka_unit_test(without_a_path_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
