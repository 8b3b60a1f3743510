/* args_line.c: options -> a command line (args.h): for a process that is started with options like
 * those of this one. */
#include <stdlib.h>
#include <string.h>
#include "base/args.h"
#include "base/text.h"

struct line {
    char **words; /* NULL-terminated */
    size_t n, room;
    bool failed; /* no memory */
};

/* word: the line's from now on; NULL: no memory. */
static void add(struct line *line, char *word)
{
    if (line->n + 2 > line->room) {
        size_t room = 2 * line->room + 16;
        char **more = realloc(line->words, room * sizeof *more);
        if (more)
            line->words = more, line->room = room;
    }
    if (!word || line->n + 2 > line->room) {
        line->failed = true;
        free(word);
        return;
    }
    line->words[line->n++] = word;
    line->words[line->n] = NULL;
}

static void add_name(struct line *line, const struct arg *arg)
{
    add(line, arg->letter ? text_format("-%c", arg->letter) : text_format("--%s", arg->name));
}

static void add_option(struct line *line, const struct arg *arg, char *value)
{
    add_name(line, arg);
    add(line, value);
}

static int initial_choice(const struct arg *arg)
{
    int i = 0;
    while (arg->initial && arg->choices[i] && strcmp(arg->choices[i], arg->initial) != 0)
        i++;
    return i;
}

/* What set_value of args.c would undo. */
static void add_arg(struct line *line, const struct arg *arg, const void *options)
{
    const void *slot = (const char *)options + arg->offset;
    const char *initial = arg->initial;
    switch (arg->type) {
    case ARG_FLAG:
        if (*(const bool *)slot)
            add_name(line, arg);
        break;
    case ARG_INT:
        if (*(const int64_t *)slot != (initial ? strtoll(initial, NULL, 10) : 0))
            add_option(line, arg, text_format("%lld", (long long)*(const int64_t *)slot));
        break;
    case ARG_REAL:
        if (*(const double *)slot != (initial ? strtod(initial, NULL) : 0))
            add_option(line, arg, text_format("%.17g", *(const double *)slot));
        break;
    case ARG_CHOICE:
        if (*(const int *)slot != initial_choice(arg))
            add_option(line, arg, text_format("%s", arg->choices[*(const int *)slot]));
        break;
    case ARG_TEXT: {
        const char *text = *(const char *const *)slot;
        if (text && (!initial || strcmp(text, initial) != 0))
            add_option(line, arg, text_format("%s", text));
        break;
    }
    case ARG_TEXTS: {
        const struct arg_texts *texts = slot;
        for (size_t i = 0; i < texts->n; i++)
            add_option(line, arg, text_format("%s", texts->items[i]));
        break;
    }
    }
}

char **args_line(const struct args_spec *spec, const void *options,
                 const struct args_result *operands)
{
    struct line line = { 0 };
    bool dashed = false;
    add(&line, text_format("%s", spec->name));
    for (int i = 0; i < operands->n_operands; i++)
        dashed = dashed || operands->operands[i][0] == '-';
    for (int i = 0; !dashed && i < operands->n_operands; i++)
        add(&line, text_format("%s", operands->operands[i]));
    for (size_t i = 0; i < spec->n_args; i++)
        add_arg(&line, &spec->args[i], options);
    if (dashed)
        add(&line, text_format("--"));
    for (int i = 0; dashed && i < operands->n_operands; i++)
        add(&line, text_format("%s", operands->operands[i]));
    if (!line.failed)
        return line.words;
    args_line_free(line.words);
    return NULL;
}

void args_line_free(char **line)
{
    for (size_t i = 0; line && line[i]; i++)
        free(line[i]);
    free(line);
}
