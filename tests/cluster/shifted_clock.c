/* shifted_clock.c: for LD_PRELOAD: a machine whose clock is SHIFT_S seconds ahead. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift_s(void)
{
    const char *text = getenv("SHIFT_S");
    return text ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real ? real(clock, now) : -1;
    if (code == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += shift_s();
    return code;
}

time_t time(time_t *out)
{
    struct timespec now = { 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
