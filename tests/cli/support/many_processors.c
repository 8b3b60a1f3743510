/* many_processors.c: for LD_PRELOAD: a machine of as many processors as MANY_PROCESSORS says. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static int processors(void)
{
    const char *text = getenv("MANY_PROCESSORS");
    long n = text ? strtol(text, NULL, 10) : 1;
    return n > 0 && n <= 1024 ? (int)n : 1;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    CPU_ZERO_S(size, set);
    for (int i = 0; i < processors(); i++)
        CPU_SET_S((size_t)i, size, set);
    return 0;
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    (void)thread;
    return sched_getaffinity(0, size, set);
}

int get_nprocs(void)
{
    return processors();
}

int get_nprocs_conf(void)
{
    return processors();
}

long sysconf(int name)
{
    if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF)
        return processors();
    long (*real)(int) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
    return real ? real(name) : -1;
}
