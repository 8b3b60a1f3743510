/* sweep.c: command line -> axes and combinations (sweep.h). */
#include "sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include "base/names.h"
#include "base/text.h"

#define MOST_VALUES 1000 /* of one key */
#define NAME_ROOM 120    /* bytes of a folder's name; longer ones are cut */

const char *const combination_state_names[] = {
    "left", "running", "stopped", "done", "failed", NULL
};

/* --- keys --- */

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* "train" -> "train.epochs"; NULL if it is not a section. */
static const char *first_of_section(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < config_n_keys; i++)
        if (strncmp(config_keys[i].path, name, length) == 0 && config_keys[i].path[length] == '.')
            return config_keys[i].path;
    return NULL;
}

/* Keys whose last part this is. */
static size_t count_called(const char *name, const struct config_key **last)
{
    size_t n = 0;
    for (size_t i = 0; i < config_n_keys; i++)
        if (strcmp(last_part(config_keys[i].path), name) == 0)
            n++, *last = &config_keys[i];
    return n;
}

static bool refuse_ambiguous(const char *name, struct err *err)
{
    const char *paths[32];
    char list[500];
    size_t n = 0;
    for (size_t i = 0; i < config_n_keys && n < 32; i++)
        if (strcmp(last_part(config_keys[i].path), name) == 0)
            paths[n++] = config_keys[i].path;
    return err_set(err, ERR_USAGE, "--sweep: '%s' could be %s; give the whole key", name,
                   names_join(paths, n, list, sizeof list));
}

static bool refuse_unknown(const char *name, struct err *err)
{
    const char *paths[256];
    size_t n = 0;
    for (; n < config_n_keys && n < 256; n++)
        paths[n] = config_keys[n].path;
    const char *nearest = names_nearest(name, paths, n);
    if (nearest)
        return err_set(err, ERR_USAGE, "--sweep: no key '%.100s'; did you mean '%s'?", name,
                       nearest);
    return err_set(err, ERR_USAGE,
                   "--sweep: no key '%.100s'; 'microtome train --template' lists them", name);
}

/* What makes results incomparable cannot be an axis. */
static bool find_key(const char *name, const struct config_key **out, struct err *err)
{
    static const char *const never[] = { "train.monitor", "objective", "distill.teacher" };
    *out = config_key_at(strcmp(name, "lr") == 0 ? "schedule.learning_rate" : name);
    if (!*out && first_of_section(name)) /* train is not short for data.train */
        return err_set(err, ERR_USAGE,
                       "--sweep: '%s' is a section of the config; give the whole key, such as %s",
                       name, first_of_section(name));
    size_t called = *out ? 1 : count_called(name, out);
    if (called != 1)
        return called == 0 ? refuse_unknown(name, err) : refuse_ambiguous(name, err);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strcmp((*out)->path, never[i]) == 0)
            return err_set(err, ERR_USAGE,
                           "--sweep: %s decides what is measured: combinations that differ in it "
                           "cannot be compared",
                           never[i]);
    return true;
}

static void name_axis(struct sweep_axis *axis)
{
    const struct config_key *only = NULL;
    const char *path = axis->key->path, *last = last_part(path);
    if (strcmp(path, "schedule.learning_rate") == 0)
        last = "lr";
    else if (count_called(last, &only) != 1 || first_of_section(last))
        last = path;
    snprintf(axis->name, sizeof axis->name, "%s", last);
}

/* --- values --- */

/* Length of the first value: to a comma outside brackets and quotes, or the end. */
static size_t value_length(const char *text)
{
    int depth = 0;
    char quote = 0;
    size_t i = 0;
    for (; text[i] && (text[i] != ',' || depth > 0 || quote); i++) {
        if (quote)
            quote = text[i] == quote ? 0 : quote;
        else if ((text[i] == '\'' || text[i] == '"') && (i == 0 || depth > 0))
            quote = text[i]; /* elsewhere it is a letter like any other */
        else if (text[i] == '[' || text[i] == '{')
            depth++;
        else if (text[i] == ']' || text[i] == '}')
            depth -= depth > 0;
    }
    return i;
}

static bool split_values(const char *text, struct sweep_axis *axis, struct err *err)
{
    axis->values = calloc(MOST_VALUES + 1, sizeof *axis->values);
    axis->numbers = calloc(MOST_VALUES + 1, sizeof *axis->numbers);
    if (!axis->values || !axis->numbers)
        return err_memory(err, "the sweep");
    for (;;) {
        text += strspn(text, " ");
        size_t length = value_length(text), kept = length;
        while (kept > 0 && text[kept - 1] == ' ')
            kept--;
        if (axis->n == MOST_VALUES)
            return err_set(err, ERR_USAGE, "--sweep: %s: more than %d values", axis->key->path,
                           MOST_VALUES);
        if (kept == 0)
            return err_set(err, ERR_USAGE, "--sweep: %s: a value is empty", axis->key->path);
        axis->values[axis->n] = text_format("%.*s", (int)kept, text);
        if (!axis->values[axis->n++])
            return err_memory(err, "the sweep");
        if (!text[length])
            return true;
        text += length + 1;
    }
}

/* Sets `number` if the key has one. */
static void number_of(const struct config_key *key, const struct train_config *config,
                      double *number)
{
    const void *slot = (const char *)config + key->offset;
    *number = key->type == CONFIG_INT    ? (double)*(const int64_t *)slot
              : key->type == CONFIG_REAL ? *(const double *)slot
                                         : 0;
}

/* Every value is one that the key takes, and no two are the same. */
static bool check_values(struct sweep_axis *axis, struct err *err)
{
    const struct config_key *key = axis->key;
    bool numeric = key->type == CONFIG_INT || key->type == CONFIG_REAL, ok = true;
    for (size_t i = 0; ok && i < axis->n; i++) {
        struct train_config config = { 0 };
        ok = config_set(&config, key, axis->values[i], "--sweep", err);
        number_of(key, &config, &axis->numbers[i]);
        config_free(&config);
        for (size_t j = 0; ok && j < i; j++)
            if (strcmp(axis->values[i], axis->values[j]) == 0 ||
                (numeric && axis->numbers[i] == axis->numbers[j]))
                ok = err_set(err, ERR_USAGE, "--sweep: %s: the value %s is given twice", key->path,
                             axis->values[i]);
    }
    if (!numeric) {
        free(axis->numbers);
        axis->numbers = NULL;
    }
    return ok;
}

static bool add_axis(struct sweep *sweep, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    char name[128];
    if (!equals || equals == text)
        return err_set(err, ERR_USAGE, "--sweep: '%s' is not KEY=VALUE,VALUE,...", text);
    if (sweep->n_axes == SWEEP_MOST_AXES)
        return err_set(err, ERR_USAGE, "--sweep: given more than %d times", SWEEP_MOST_AXES);
    struct sweep_axis *axis = &sweep->axes[sweep->n_axes];
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    if (!find_key(name, &axis->key, err))
        return false;
    for (size_t i = 0; i < sweep->n_axes; i++)
        if (sweep->axes[i].key == axis->key)
            return err_set(err, ERR_USAGE, "--sweep: %s is given twice", axis->key->path);
    sweep->n_axes++;
    name_axis(axis);
    return split_values(equals + 1, axis, err) && check_values(axis, err);
}

/* --- combinations --- */

size_t sweep_value(const struct sweep *sweep, size_t i, size_t a)
{
    for (size_t after = sweep->n_axes - 1; after > a; after--)
        i /= sweep->axes[after].n;
    return i % sweep->axes[a].n;
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* "lr=0.01,network.name=resnet50". What a file system or a shell might not take becomes _; then, or
 * if it is long, a hash of the whole tells names apart. */
static char *name_of(const struct sweep *sweep, size_t i)
{
    char whole[8192] = "", name[NAME_ROOM + 1];
    size_t used = 0;
    bool changed = false;
    for (size_t a = 0; a < sweep->n_axes && used < sizeof whole; a++)
        used +=
            (size_t)snprintf(whole + used, sizeof whole - used, "%s%s=%s", a ? "," : "",
                             sweep->axes[a].name, sweep->axes[a].values[sweep_value(sweep, i, a)]);
    size_t length = strlen(whole);
    for (size_t c = 0; c < length && c < NAME_ROOM; c++) {
        bool safe = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           ".,=+-_",
                           whole[c]) != NULL;
        name[c] = (char)(safe ? whole[c] : '_');
        changed = changed || !safe;
    }
    if (!changed && length <= NAME_ROOM)
        return text_format("%s", whole);
    return text_format("%.*s-%08x", (int)(length < NAME_ROOM - 9 ? length : NAME_ROOM - 9), name,
                       (unsigned)hash_of(whole));
}

static bool combine(struct sweep *sweep, struct err *err)
{
    size_t n = 1;
    for (size_t a = 0; a < sweep->n_axes; a++) {
        n *= sweep->axes[a].n;
        if (n > SWEEP_MOST)
            return err_set(err, ERR_USAGE,
                           "--sweep: more than %d combinations; sweep fewer values, or one key "
                           "after another",
                           SWEEP_MOST);
    }
    sweep->items = calloc(n, sizeof *sweep->items);
    if (!sweep->items)
        return err_memory(err, "the sweep");
    sweep->n = n;
    for (size_t i = 0; i < n; i++)
        if (!(sweep->items[i].name = name_of(sweep, i)))
            return err_memory(err, "the sweep");
    return true;
}

bool sweep_new(const char *const *texts, size_t n, const char *folder, struct sweep *out,
               struct err *err)
{
    *out = (struct sweep){ .folder = text_format("%s", folder), .measure = "loss", .lowest = true };
    if (!out->folder)
        return err_memory(err, "the sweep");
    for (size_t i = 0; i < n; i++)
        if (!add_axis(out, texts[i], err))
            return false;
    return combine(out, err);
}

void sweep_free(struct sweep *sweep)
{
    for (size_t a = 0; a < sweep->n_axes; a++) {
        for (size_t i = 0; sweep->axes[a].values && i < sweep->axes[a].n; i++)
            free(sweep->axes[a].values[i]);
        free(sweep->axes[a].values);
        free(sweep->axes[a].numbers);
    }
    for (size_t i = 0; i < sweep->n; i++) {
        free(sweep->items[i].name);
        free(sweep->items[i].error);
        json_decref(sweep->items[i].result);
    }
    free(sweep->items);
    free(sweep->folder);
    *sweep = (struct sweep){ 0 };
}

char **sweep_settings(const struct sweep *sweep, size_t i)
{
    char **settings = calloc(sweep->n_axes + 1, sizeof *settings);
    bool whole = settings != NULL;
    for (size_t a = 0; whole && a < sweep->n_axes; a++) {
        const struct sweep_axis *axis = &sweep->axes[a];
        settings[a] = text_format("%s=%s", axis->key->path, axis->values[sweep_value(sweep, i, a)]);
        whole = settings[a] != NULL;
    }
    if (whole)
        return settings;
    sweep_settings_free(settings, sweep->n_axes);
    return NULL;
}

void sweep_settings_free(char **settings, size_t n)
{
    for (size_t i = 0; settings && i < n; i++)
        free(settings[i]);
    free(settings);
}

char *sweep_folder(const struct sweep *sweep, size_t i)
{
    return text_format("%s/%s", sweep->folder, sweep->items[i].name);
}
