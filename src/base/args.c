/* args.c: parsing of a command line against its table (args.h). Printing is in args_print.c. */
#include "base/args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/names.h"

static void *slot(const struct arg *arg, void *options)
{
    return (char *)options + arg->offset;
}

static bool set_number(const struct arg *arg, const char *text, void *options, struct err *err)
{
    char *end = NULL;
    errno = 0;
    bool whole = arg->type == ARG_INT;
    long long integer = whole ? strtoll(text, &end, 10) : 0;
    double real = whole ? (double)integer : strtod(text, &end);
    if (end == text || *end || errno == ERANGE || !isfinite(real))
        return err_set(err, ERR_USAGE, "--%s: '%s' is not a%s number", arg->name, text,
                       whole ? " whole" : "");
    if ((arg->min != 0 || arg->max != 0) && (real < arg->min || real > arg->max))
        return err_set(err, ERR_USAGE, "--%s: %s is outside the range %.*g to %.*g", arg->name,
                       text, args_digits(arg), arg->min, args_digits(arg), arg->max);
    if (whole)
        *(int64_t *)slot(arg, options) = integer;
    else
        *(double *)slot(arg, options) = real;
    return true;
}

static bool set_choice(const struct arg *arg, const char *text, void *options, struct err *err)
{
    size_t n = 0;
    for (; arg->choices[n]; n++)
        if (strcmp(arg->choices[n], text) == 0) {
            *(int *)slot(arg, options) = (int)n;
            return true;
        }
    char option[64];
    snprintf(option, sizeof option, "--%s", arg->name);
    names_refuse(text, arg->choices, n, err);
    return err_prefix(err, option);
}

static bool add_text(const struct arg *arg, const char *text, struct arg_texts *texts,
                     struct err *err)
{
    if (texts->n == ARG_MAX_TEXTS)
        return err_set(err, ERR_USAGE, "--%s: given more than %d times", arg->name, ARG_MAX_TEXTS);
    texts->items[texts->n++] = text;
    return true;
}

static bool set_value(const struct arg *arg, const char *text, void *options, struct err *err)
{
    switch (arg->type) {
    case ARG_FLAG:
        *(bool *)slot(arg, options) = true;
        return true;
    case ARG_INT:
    case ARG_REAL:
        return set_number(arg, text, options, err);
    case ARG_CHOICE:
        return set_choice(arg, text, options, err);
    case ARG_TEXT:
        if (!*text)
            return err_set(err, ERR_USAGE, "--%s: the value is empty", arg->name);
        *(const char **)slot(arg, options) = text;
        return true;
    case ARG_TEXTS:
        return add_text(arg, text, slot(arg, options), err);
    }
    return err_set(err, ERR_USAGE, "--%s: unknown type", arg->name);
}

static bool unknown_option(const struct args_spec *spec, const char *name, struct err *err)
{
    const char *names[128];
    size_t n = 0;
    for (; n < spec->n_args && n < 127; n++)
        names[n] = spec->args[n].name;
    names[n++] = "help";
    const char *nearest = names_nearest(name, names, n);
    if (nearest)
        return err_set(err, ERR_USAGE, "no option --%s; did you mean --%s?", name, nearest);
    return err_set(err, ERR_USAGE, "no option --%s; 'microtome %s --help' lists them", name,
                   spec->name);
}

/* Finds "--name", "--name=value" or "-x". *inline_value is the text after '=', or NULL. */
static const struct arg *find_arg(const struct args_spec *spec, const char *word,
                                  const char **inline_value, struct err *err)
{
    *inline_value = NULL;
    if (word[1] != '-') {
        for (size_t i = 0; i < spec->n_args; i++)
            if (spec->args[i].letter && spec->args[i].letter == word[1] && !word[2])
                return &spec->args[i];
        err_set(err, ERR_USAGE, "no option %s; 'microtome %s --help' lists them", word, spec->name);
        return NULL;
    }
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word + 2);
    for (size_t i = 0; i < spec->n_args; i++)
        if (strcmp(spec->args[i].name, name) == 0) {
            *inline_value = equals ? equals + 1 : NULL;
            return &spec->args[i];
        }
    unknown_option(spec, name, err);
    return NULL;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool parse_words(const struct args_spec *spec, int argc, char **argv, void *options,
                        struct args_result *result, bool *given, struct err *err)
{
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        if (only_operands || word[0] != '-' || !word[1]) {
            argv[1 + result->n_operands++] = word; /* never past i */
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_operands = true;
            continue;
        }
        const char *value = NULL;
        const struct arg *arg = find_arg(spec, word, &value, err);
        if (!arg)
            return false;
        if (arg->type == ARG_FLAG && value)
            return err_set(err, ERR_USAGE, "--%s takes no value", arg->name);
        if (arg->type != ARG_FLAG && !value) {
            if (i + 1 >= argc)
                return err_set(err, ERR_USAGE, "--%s needs a value (%s)", arg->name, arg->value);
            value = argv[++i];
        }
        if (!set_value(arg, value, options, err))
            return false;
        given[arg - spec->args] = true;
    }
    return true;
}

static bool check_excluded(const struct args_spec *spec, const bool *given, struct err *err)
{
    for (size_t i = 0; i < spec->n_args; i++)
        for (size_t k = 0; spec->args[i].excludes && given[i] && k < spec->n_args; k++)
            if (given[k] && strcmp(spec->args[i].excludes, spec->args[k].name) == 0)
                return err_set(err, ERR_USAGE, "--%s and --%s cannot be combined",
                               spec->args[k].name, spec->args[i].name);
    return true;
}

static bool check_complete(const struct args_spec *spec, const struct args_result *result,
                           const bool *given, struct err *err)
{
    for (size_t i = 0; i < spec->n_args; i++)
        if (spec->args[i].required && !given[i])
            return err_set(err, ERR_USAGE, "--%s %s is required", spec->args[i].name,
                           spec->args[i].value);
    if (result->n_operands < spec->min_operands)
        return err_set(err, ERR_USAGE, "needs %s", spec->operands);
    if (result->n_operands > spec->max_operands)
        return err_set(err, ERR_USAGE, "unexpected argument '%s'",
                       result->operands[spec->max_operands]);
    return true;
}

bool args_parse(const struct args_spec *spec, int argc, char **argv, void *options,
                struct args_result *result, struct err *err)
{
    *result = (struct args_result){ .operands = argv + 1 };
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i])) {
            result->help = true;
            return true;
        }
    bool *given = calloc(spec->n_args + 1, sizeof *given);
    if (!given)
        return err_memory(err, "options");
    bool ok = true;
    for (size_t i = 0; ok && i < spec->n_args; i++)
        if (spec->args[i].initial)
            ok = set_value(&spec->args[i], spec->args[i].initial, options, err);
    ok = ok && parse_words(spec, argc, argv, options, result, given, err) &&
         check_excluded(spec, given, err) && check_complete(spec, result, given, err);
    free(given);
    return ok;
}
