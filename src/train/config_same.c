/* config_same.c: whether a training can continue with another config (config.h). */
#include <stdlib.h>
#include <string.h>
#include "train/objectives.h"

static size_t line_of(const char *text)
{
    return strcspn(text, "\n");
}

/* The first line in which two configs differ, other than in what changes no result, and in how a
 * network is cut into stages. On another number of ranks a step may be made up in another way. */
static bool same_lines(const char *path, const char *then, const char *now, bool same_ranks,
                       struct err *err)
{
    static const char *const free_keys[] = {
        "  workers:",  "  timeout_s:", "  every_steps:",     "  keep:",       "  bind:",
        "  spill:",    "  overlap:",   "  shard_optimizer:", "  heads:",      "  stages:",
        "  space:",    "  schedule:",  "  times:",           "  cut:",        "  micro_batch:",
        "  sequence:", "  recompute:", "  batch:",           "  accumulate:", "  data:"
    };
    const size_t n_free = sizeof free_keys / sizeof *free_keys - (same_ranks ? 3 : 0);
    while (*then || *now) {
        size_t a = line_of(then), b = line_of(now);
        bool same = a == b && memcmp(then, now, a) == 0;
        for (size_t i = 0; i < n_free; i++)
            same |= strncmp(then, free_keys[i], strlen(free_keys[i])) == 0 &&
                    strncmp(now, free_keys[i], strlen(free_keys[i])) == 0;
        if (!same)
            return err_set(err, ERR_USAGE,
                           "%s: started with '%.*s', but the config now has '%.*s'; use the same "
                           "config or another folder",
                           path, (int)a, then, (int)b, now);
        then += a + (then[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return true;
}

/* Keys that are newer than the first have their defaults there. */
bool config_same(const char *path, const char *then, const char *now, bool same_ranks,
                 struct err *err)
{
    struct train_config config;
    if (!config_parse(then, strlen(then), path, NULL, 0, &config, err))
        return false;
    bool ok = objective_resolve(&config, err);
    char *text = ok ? config_text(&config) : NULL;
    ok = ok && (text || err_memory(err, "the config")) &&
         same_lines(path, text, now, same_ranks, err);
    free(text);
    config_free(&config);
    return ok;
}
