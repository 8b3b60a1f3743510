/* scheduler.c: the table of schedulers, and time limits (scheduler.h). */
#include "cluster/scheduler.h"

#include <stdlib.h>
#include <string.h>

extern const struct scheduler scheduler_slurm, scheduler_sge;

const struct scheduler *const schedulers[] = { &scheduler_slurm, &scheduler_sge, NULL };
const char *const scheduler_choices[] = { "local", "slurm", "sge", NULL };

const struct scheduler *scheduler_named(const char *name)
{
    for (size_t i = 0; schedulers[i]; i++)
        if (strcmp(schedulers[i]->name, name) == 0)
            return schedulers[i];
    return NULL;
}

bool time_parse(const char *text, int64_t *out, struct err *err)
{
    long long days = 0, parts[3] = { 0 };
    int n = 0, used = 0;
    const char *clock = text;
    char unit = 0;
    *out = -1;
    if (sscanf(text, "%lld%c%n", &parts[0], &unit, &used) == 2 && !text[used] &&
        strchr("smhd", unit) && parts[0] >= 0 && parts[0] < INT64_C(1000000000000))
        *out = parts[0] * (unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 86400);
    used = 0; /* stays 0 where no '-' follows the number */
    if (sscanf(text, "%lld-%n", &days, &used) == 1 && used > 0)
        clock = text + used;
    else
        days = 0;
    used = 0;
    n = sscanf(clock, "%lld:%lld:%lld%n", &parts[0], &parts[1], &parts[2], &used);
    if (n == 3 && !clock[used] && parts[1] >= 0 && parts[1] < 60 && parts[2] >= 0 &&
        parts[2] < 60 && parts[0] >= 0 && parts[0] < 100000 && days >= 0 && days < 10000)
        *out = ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
    if (*out < 1 || *out > INT64_C(10000) * 86400)
        return err_set(err, ERR_USAGE,
                       "--time: '%s' is not a time; write 90s, 30m, 2h, 1d or HH:MM:SS", text);
    return true;
}

void time_print(int64_t seconds, char out[32])
{
    snprintf(out, 32, "%02lld:%02lld:%02lld", (long long)(seconds / 3600),
             (long long)(seconds / 60 % 60), (long long)(seconds % 60));
}
