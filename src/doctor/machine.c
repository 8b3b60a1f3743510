/* machine.c: processors, instruction sets, memory, the container's limits, the disk of a folder. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/file.h"
#include "dist/numa.h"
#include "doctor/doctor.h"
#include "base/text.h"

#define GB 1e9
#define MOST_BYTES ((size_t)16 << 20) /* of a file: cpuinfo grows with the number of processors */
#define LEAST_MEMORY (2 * GB)         /* predict's limit; extract needs 0.3 GB */
#define LEAST_DISK (5 * GB) /* a slide's dense patches, or the checkpoints of a training run */

/* A small file in /proc or /sys; NULL if there is none. Owned by the caller. */
static char *read_fact(const char *root, const char *name)
{
    char *path = text_format("%s%s", root, name), *text;
    bool found = path && file_read(path, MOST_BYTES, &text, NULL, NULL);
    free(path);
    return found ? text : NULL;
}

double doctor_cpu_quota(const char *root)
{
    double quota = 0, period = 0, allowed = 0;
    char *text = read_fact(root, "/sys/fs/cgroup/cpu.max"); /* "200000 100000" or "max 100000" */
    if (text && sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0)
        allowed = quota / period;
    free(text);
    if (allowed > 0)
        return allowed;
    char *old_quota = read_fact(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    char *old_period = read_fact(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (old_quota && old_period) {
        quota = strtod(old_quota, NULL); /* -1: no limit */
        period = strtod(old_period, NULL);
        allowed = quota > 0 && period > 0 ? quota / period : 0;
    }
    free(old_quota);
    free(old_period);
    return allowed;
}

double doctor_memory_limit(const char *root)
{
    static const char *const names[] = { "/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
    double limit = 0;
    for (size_t i = 0; i < 2 && limit <= 0; i++) {
        char *text = read_fact(root, names[i]);
        if (text)
            limit = strtod(text, NULL); /* "max" is 0 */
        free(text);
    }
    return limit < 1e18 ? limit : 0; /* version 1 writes a huge number for no limit */
}

/* The value of "name ... : value" in /proc/cpuinfo; "" if absent. */
static void processor_name(const char *root, char out[100])
{
    char *text = read_fact(root, "/proc/cpuinfo");
    const char *found = text ? strstr(text, "model name") : NULL;
    const char *colon = found ? strchr(found, ':') : NULL;
    out[0] = '\0';
    if (colon) {
        colon += 1 + strspn(colon + 1, " ");
        snprintf(out, 100, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    free(text);
}

static void look_at_processors(struct doctor_list *list, const char *root)
{
    cpu_set_t set;
    int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    double quota = doctor_cpu_quota(root);
    char name[100];
    processor_name(root, name);
    struct doctor_finding *found =
        doctor_add(list, "machine", "processors", DOCTOR_OK, "%d of %ld usable%s%s", usable, online,
                   name[0] ? ", " : "", name);
    DOCTOR_MEANS(found, "every command uses %d thread%s unless --threads says otherwise", usable,
                 usable == 1 ? "" : "s");
    if (quota <= 0)
        return;
    bool tight = quota < usable - 0.01;
    found = doctor_add(list, "machine", "container", tight ? DOCTOR_NOTE : DOCTOR_OK,
                       "a quota of %.3g processors", quota);
    DOCTOR_MEANS(found, tight ? "more threads than that would wait for each other"
                              : "the quota allows all usable processors");
    if (tight)
        DOCTOR_REMEDY(found, "pass --threads %d", quota < 1 ? 1 : (int)quota);
}

/* "--ranks 2: 1 on each NUMA node, .." for the numbers of ranks that fill all nodes. */
static void look_at_nodes(struct doctor_list *list)
{
    struct numa *numa = NULL;
    struct err err = { 0 };
    if (!numa_new(NULL, &numa, &err)) {
        struct doctor_finding *lost =
            doctor_add(list, "machine", "NUMA", DOCTOR_NOTE, "%.150s", err.text);
        DOCTOR_MEANS(lost, "ranks of a training are not bound to processors");
        DOCTOR_REMEDY(lost, "unset HWLOC_SYNTHETIC and other variables of hwloc");
        return;
    }
    int nodes = numa_nodes(numa);
    struct doctor_finding *found =
        doctor_add(list, "machine", "NUMA", DOCTOR_OK, "%d node%s, %d core%s, %d processor%s",
                   nodes, nodes == 1 ? "" : "s", numa_cores(numa), numa_cores(numa) == 1 ? "" : "s",
                   numa_processors(numa), numa_processors(numa) == 1 ? "" : "s");
    struct numa_place place = numa_place(numa, nodes, 0);
    if (nodes == 1)
        DOCTOR_MEANS(found, "all memory is equally near; ranks of a training are not bound");
    else if (place.bound)
        DOCTOR_MEANS(found,
                     "train --ranks %d: each rank is bound to one node and its memory, rank 0 to "
                     "%s, with %d thread%s (ranks.bind)",
                     nodes, place.words, numa_processors(numa) / nodes,
                     numa_processors(numa) / nodes == 1 ? "" : "s");
    else
        DOCTOR_MEANS(found, "train --ranks %d: %s", nodes, place.words);
    numa_free(numa);
}

static void look_at_instructions(struct doctor_list *list)
{
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    struct doctor_finding *found =
        doctor_add(list, "machine", "instructions", avx2 ? DOCTOR_OK : DOCTOR_NOTE, "%s",
                   avx512 ? "AVX2, FMA, AVX-512"
                   : avx2 ? "AVX2, FMA"
                          : "no AVX2");
    DOCTOR_MEANS(found, avx2 ? "the fast kernels are used"
                             : "networks run on generic code, several times slower");
    if (!avx2)
        DOCTOR_REMEDY(found,
                      "use a processor from after 2013; in a virtual machine pass the host's "
                      "processor through (qemu: -cpu host)");
#else
    struct doctor_finding *found =
        doctor_add(list, "machine", "instructions", DOCTOR_NOTE, "not an x86-64 processor");
    DOCTOR_MEANS(found, "the portable kernels are used");
#endif
}

/* A line "name:   1234 kB" of /proc/meminfo, in bytes; 0 if absent. */
static double meminfo(const char *text, const char *name)
{
    const char *found = text ? strstr(text, name) : NULL;
    return found ? 1024 * strtod(found + strlen(name) + 1, NULL) : 0;
}

static void look_at_memory(struct doctor_list *list, const char *root)
{
    char *text = read_fact(root, "/proc/meminfo");
    double total = meminfo(text, "MemTotal"), free_bytes = meminfo(text, "MemAvailable");
    double limit = doctor_memory_limit(root);
    free(text);
    bool limited = limit > 0 && limit < total;
    double usable = limited && limit < free_bytes ? limit : free_bytes;
    char may_use[64] = "";
    if (limited)
        snprintf(may_use, sizeof may_use, ", the container may use %.1f GB", limit / GB);
    struct doctor_finding *found =
        doctor_add(list, "machine", "memory", usable < LEAST_MEMORY ? DOCTOR_NOTE : DOCTOR_OK,
                   "%.1f GB free of %.1f GB%s", free_bytes / GB, total / GB, may_use);
    DOCTOR_MEANS(found, "extraction needs less than 0.3 GB, a heatmap less than 2 GB, regardless "
                        "of slide size; training depends on the batch size");
    if (usable < LEAST_MEMORY)
        DOCTOR_REMEDY(found, "end other programs, pass predict --memory, or train with a smaller "
                             "batch");
}

static const char *file_system_name(long type)
{
    static const struct {
        long type;
        const char *name;
    } names[] = {
        { 0xEF53, "ext4" },      { 0x58465342, "XFS" },     { 0x9123683E, "btrfs" },
        { 0x01021994, "tmpfs" }, { 0x6969, "NFS" },         { 0x0BD00BD0, "Lustre" },
        { 0x47504653, "GPFS" },  { 0x794C7630, "overlay" }, { 0x2FC12FC1, "ZFS" },
        { 0x65735546, "FUSE" },  { 0x19830326, "BeeGFS" },  { 0x00C36400, "Ceph" },
        { 0xFF534D42, "CIFS" },  { 0xFE534D42, "SMB" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].type == type)
            return names[i].name;
    return "file system";
}

static void look_at_disk(struct doctor_list *list, const char *folder)
{
    struct statvfs space;
    struct statfs kind;
    if (statvfs(folder, &space) != 0 || statfs(folder, &kind) != 0) {
        struct doctor_finding *found = doctor_add(list, "machine", "disk", DOCTOR_BROKEN,
                                                  "%.100s: %s", folder, strerror(errno));
        DOCTOR_REMEDY(found, "choose a folder that exists");
        return;
    }
    double free_bytes = (double)space.f_bavail * (double)space.f_frsize;
    bool writable = access(folder, W_OK) == 0;
    struct doctor_finding *found = doctor_add(
        list, "machine", "disk", free_bytes < LEAST_DISK || !writable ? DOCTOR_NOTE : DOCTOR_OK,
        "%.1f GB free in %.80s, %s%s", free_bytes / GB, folder, file_system_name((long)kind.f_type),
        writable ? "" : ", not writable");
    DOCTOR_MEANS(found, "dense patches of a slide take 1 to 5 GB, a heatmap a few MB");
    if (!writable)
        DOCTOR_REMEDY(found, "write results to another folder (-o)");
    else if (free_bytes < LEAST_DISK)
        DOCTOR_REMEDY(found,
                      "predict from slides, which needs no patch store, or use a larger disk (-o)");
}

void doctor_machine(struct doctor_list *list, const char *folder, const char *root)
{
    look_at_processors(list, root);
    look_at_nodes(list);
    look_at_instructions(list);
    look_at_memory(list, root);
    look_at_disk(list, folder);
}
