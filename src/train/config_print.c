/* config_print.c: the config (config.h) as YAML: with defaults and help as a template, or with the
 * values of a run. */
#include <stdlib.h>
#include <string.h>
#include "train/config.h"

#define WRAP 92

/* Help as comment lines above a key. */
static void print_help(FILE *stream, const char *help, int indent)
{
    while (*help) {
        size_t room = WRAP - (size_t)indent, length = strlen(help);
        if (length > room) {
            length = room;
            while (length > 1 && help[length] != ' ')
                length--;
        }
        fprintf(stream, "%*s# %.*s\n", indent, "", (int)length, help);
        help += length + (help[length] == ' ');
    }
}

/* Opens the sections of a key where they differ from those of the key before; returns the indent.
 */
static int begin_section(FILE *stream, size_t i, bool blank)
{
    const char *path = config_keys[i].path, *name = path;
    int indent = 0;
    for (const char *dot; (dot = strchr(name, '.')); name = dot + 1, indent += 2) {
        size_t length = (size_t)(dot + 1 - path);
        if (i == 0 || strncmp(config_keys[i - 1].path, path, length) != 0)
            fprintf(stream, "%s%*s%.*s:\n", blank && indent == 0 ? "\n" : "", indent, "",
                    (int)(dot - name), name);
    }
    return indent;
}

static const char *leaf(const struct config_key *key)
{
    const char *dot = strrchr(key->path, '.');
    return dot ? dot + 1 : key->path;
}

void config_print_template(FILE *stream)
{
    fputs("# Config for 'microtome train'. Keys that are omitted have the values shown here.\n",
          stream);
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *key = &config_keys[i];
        int indent = begin_section(stream, i, true);
        print_help(stream, key->help, indent);
        if (key->type == CONFIG_CHOICE) {
            fprintf(stream, "%*s#", indent, "");
            for (size_t j = 0; key->choices[j]; j++)
                fprintf(stream, "%s %s", j ? " |" : "", key->choices[j]);
            fputc('\n', stream);
        } else if (key->type == CONFIG_INT || key->type == CONFIG_REAL) {
            fprintf(stream, "%*s# %.10g to %.10g\n", indent, "", key->min, key->max);
        }
        fprintf(stream, "%*s%s: %s\n", indent, "", leaf(key), key->initial);
    }
}

/* Single quotes hold any text; a quote in it is doubled. */
static void print_text(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++)
        fputs((char[]){ *text, *text == '\'' ? '\'' : 0, 0 }, stream);
    fputc('\'', stream);
}

static void print_value(const struct config_key *key, const void *slot, FILE *stream)
{
    const struct texts *texts = slot;
    const double *reals = slot;
    const int64_t *counts = slot;
    switch (key->type) {
    case CONFIG_BOOL:
        fputs(*(const bool *)slot ? "true" : "false", stream);
        break;
    case CONFIG_INT:
        fprintf(stream, "%lld", (long long)*counts);
        break;
    case CONFIG_PARTS:
        fprintf(stream, "%lldx%lld", (long long)counts[0], (long long)counts[1]);
        break;
    case CONFIG_REAL:
        fprintf(stream, "%.17g", *reals);
        break;
    case CONFIG_RGB:
        fprintf(stream, "[%.17g, %.17g, %.17g]", reals[0], reals[1], reals[2]);
        break;
    case CONFIG_CHOICE:
        fputs(key->choices[*(const int *)slot], stream);
        break;
    case CONFIG_TEXT:
        print_text(stream, *(char *const *)slot);
        break;
    case CONFIG_TEXTS:
        fputc('[', stream);
        for (size_t i = 0; i < texts->n; i++) {
            fputs(i ? ", " : "", stream);
            print_text(stream, texts->items[i]);
        }
        fputc(']', stream);
        break;
    }
}

void config_print(const struct train_config *config, FILE *stream)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        int indent = begin_section(stream, i, false);
        fprintf(stream, "%*s%s: ", indent, "", leaf(&config_keys[i]));
        print_value(&config_keys[i], (const char *)config + config_keys[i].offset, stream);
        fputc('\n', stream);
    }
}

char *config_text(const struct train_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return NULL;
    config_print(config, memory);
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
