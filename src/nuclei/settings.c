/* settings.c: see settings.h. */
#include "nuclei/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setting {
    const char *name;
    size_t offset;
    double least, most;
};

#define SETTING(field, low, high)                                                                  \
    {                                                                                              \
#field, offsetof(struct nuclei_settings, field), low, high                                 \
    }

static const struct setting settings_table[] = {
    SETTING(smooth_um, 0, 20),      SETTING(window_um, 1, 1000),      SETTING(level, 0, 1),
    SETTING(min_contrast, 0, 10),   SETTING(min_hematoxylin, 0, 10),  SETTING(open_um, 0, 100),
    SETTING(fill_um2, 0, 1e6),      SETTING(marker_um, 0, 20),        SETTING(tone_um, 0, 20),
    SETTING(split, 0, 1),           SETTING(min_distance_um, 0, 100), SETTING(min_area_um2, 0, 1e5),
    SETTING(max_area_um2, 1, 1e5),  SETTING(min_red, 0, 100),         SETTING(max_red, 0, 100),
    SETTING(pale_area_um2, 0, 1e6), SETTING(pale_solidity, 0, 1),
};
enum { N_SETTINGS = sizeof settings_table / sizeof *settings_table };
_Static_assert(N_SETTINGS * sizeof(double) == sizeof(struct nuclei_settings),
               "every setting has a line in the table");

static double value_of(const struct nuclei_settings *settings, const struct setting *setting)
{
    double value;
    memcpy(&value, (const char *)settings + setting->offset, sizeof value);
    return value;
}

void nuclei_settings_text(const struct nuclei_settings *settings, char *out, size_t room)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < N_SETTINGS && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s=%g", i ? " " : "",
                                 settings_table[i].name, value_of(settings, &settings_table[i]));
}

static bool refuse_name(const char *name, size_t length, struct err *err)
{
    char all[800];
    struct nuclei_settings defaults = nuclei_defaults();
    nuclei_settings_text(&defaults, all, sizeof all);
    return err_set(err, ERR_USAGE, "--settings: no setting is called '%.*s'; there are: %s",
                   (int)length, name, all);
}

/* The settings that nuclei_net_find uses. */
static bool is_of_learnt(const struct setting *setting)
{
    static const char *const names[] = { "fill_um2", "min_distance_um", "min_area_um2",
                                         "max_area_um2" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], setting->name) == 0)
            return true;
    return false;
}

static bool set_one(const char *text, size_t length, bool learnt, struct nuclei_settings *settings,
                    struct err *err)
{
    const char *equal = memchr(text, '=', length);
    size_t name = equal ? (size_t)(equal - text) : length;
    int i = 0;
    while (i < N_SETTINGS && (strlen(settings_table[i].name) != name ||
                              memcmp(settings_table[i].name, text, name) != 0))
        i++;
    if (i == N_SETTINGS)
        return refuse_name(text, name, err);
    const struct setting *setting = &settings_table[i];
    if (learnt && !is_of_learnt(setting))
        return err_set(err, ERR_USAGE,
                       "--settings: %s does not apply with --model; fill_um2, min_distance_um, "
                       "min_area_um2 and max_area_um2 do",
                       setting->name);
    char *end = NULL;
    double value = equal ? strtod(equal + 1, &end) : 0;
    if (!equal || end == equal + 1 || end != text + length)
        return err_set(err, ERR_USAGE, "--settings: '%.*s' is not %s=NUMBER", (int)length, text,
                       setting->name);
    if (!(value >= setting->least && value <= setting->most))
        return err_set(err, ERR_USAGE, "--settings: %s: %g is outside the range %g to %g",
                       setting->name, value, setting->least, setting->most);
    memcpy((char *)settings + setting->offset, &value, sizeof value);
    return true;
}

bool nuclei_settings_parse(const char *text, bool learnt, struct nuclei_settings *settings,
                           struct err *err)
{
    bool ok = true;
    while (ok && *text) {
        size_t length = strcspn(text, ",");
        ok = set_one(text, length, learnt, settings, err);
        text += length + (text[length] == ',');
    }
    if (ok && settings->min_area_um2 > settings->max_area_um2)
        ok = err_set(err, ERR_USAGE, "--settings: min_area_um2 %g is above max_area_um2 %g",
                     settings->min_area_um2, settings->max_area_um2);
    return ok;
}
