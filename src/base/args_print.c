/* args_print.c: --help and man pages from a command's option table (args.h). */
#include "base/args.h"

#include <ctype.h>
#include <string.h>

#define TEXT_COLUMN 30
#define LINE_WIDTH 96

static void print_range(const struct arg *arg, FILE *stream)
{
    if (arg->type == ARG_CHOICE) {
        fputs(" (", stream);
        for (size_t i = 0; arg->choices[i]; i++)
            fprintf(stream, "%s%s", i ? "|" : "", arg->choices[i]);
        fputc(')', stream);
    }
    if (arg->min != 0 || arg->max != 0)
        fprintf(stream, " (%.*g to %.*g)", args_digits(arg), arg->min, args_digits(arg), arg->max);
    if (arg->initial)
        fprintf(stream, " [%s]", arg->initial);
    if (arg->required)
        fputs(" (required)", stream);
}

/* Breaks text at spaces so that no line exceeds LINE_WIDTH; following lines are indented. */
static void print_wrapped(const char *text, int column, int indent, FILE *stream)
{
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)length > LINE_WIDTH) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', stream);
            column++;
        }
        fwrite(text, 1, length, stream);
        column += (int)length;
        text += length;
        text += strspn(text, " \n");
    }
}

static void print_option(const struct arg *arg, FILE *stream)
{
    char head[80];
    int used = arg->letter ? snprintf(head, sizeof head, "  -%c, --%s", arg->letter, arg->name)
                           : snprintf(head, sizeof head, "      --%s", arg->name);
    if (arg->type != ARG_FLAG)
        snprintf(head + used, sizeof head - (size_t)used, " %s", arg->value);
    fputs(head, stream);
    int column = (int)strlen(head);
    if (column + 2 > TEXT_COLUMN)
        fprintf(stream, "\n%*s", TEXT_COLUMN, "");
    else
        fprintf(stream, "%*s", TEXT_COLUMN - column, "");
    char text[1024] = "";
    FILE *memory = fmemopen(text, sizeof text, "w");
    if (memory) {
        fputs(arg->help, memory);
        print_range(arg, memory);
        fclose(memory);
    }
    print_wrapped(text, TEXT_COLUMN, TEXT_COLUMN, stream);
    fputc('\n', stream);
}

void args_print_help(const struct args_spec *spec, FILE *stream)
{
    fprintf(stream, "microtome %s: %s\n\nUsage: microtome %s [options]%s%s\n\n", spec->name,
            spec->summary, spec->name, spec->operands[0] ? " " : "", spec->operands);
    print_wrapped(spec->description, 0, 0, stream);
    fputs("\n\nOptions:\n", stream);
    for (size_t i = 0; i < spec->n_args; i++)
        print_option(&spec->args[i], stream);
    fputs("  -h, --help                  show this help\n\nExample:\n", stream);
    for (const char *line = spec->example; *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(stream, "  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

void args_print_man_text(const char *text, FILE *stream)
{
    bool line_begins = true;
    for (; *text; text++) {
        if (line_begins && (*text == '.' || *text == '\''))
            fputs("\\&", stream);
        line_begins = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stream);
        else if (*text == '-')
            fputs("\\-", stream);
        else
            fputc(*text, stream);
    }
}

static void print_man_option(const struct arg *arg, FILE *stream)
{
    fputs(".TP\n", stream);
    if (arg->letter)
        fprintf(stream, "\\fB\\-%c\\fR, ", arg->letter);
    fputs("\\fB\\-\\-", stream);
    args_print_man_text(arg->name, stream);
    fputs("\\fR", stream);
    if (arg->type != ARG_FLAG)
        fprintf(stream, " \\fI%s\\fR", arg->value);
    fputc('\n', stream);
    args_print_man_text(arg->help, stream);
    print_range(arg, stream);
    fputc('\n', stream);
}

/* "synthesize train" -> "synthesize\-train" */
static void print_page_name(const char *name, bool upper, FILE *stream)
{
    for (; *name; name++)
        if (*name == ' ')
            fputs("\\-", stream);
        else
            fputc(upper ? toupper((unsigned char)*name) : *name, stream);
}

void args_print_man(const struct args_spec *spec, const char *version, FILE *stream)
{
    fputs(".TH MICROTOME\\-", stream);
    print_page_name(spec->name, true, stream);
    fprintf(stream, " 1 \"\" \"microtome %s\" \"User commands\"\n", version);
    fputs(".SH NAME\nmicrotome\\-", stream);
    print_page_name(spec->name, false, stream);
    fputs(" \\- ", stream);
    args_print_man_text(spec->summary, stream);
    fprintf(stream, "\n.SH SYNOPSIS\n\\fBmicrotome %s\\fR [options]%s", spec->name,
            spec->operands[0] ? " " : "");
    args_print_man_text(spec->operands, stream);
    fputs("\n.SH DESCRIPTION\n", stream);
    args_print_man_text(spec->description, stream);
    fputs("\n.SH OPTIONS\n", stream);
    for (size_t i = 0; i < spec->n_args; i++)
        print_man_option(&spec->args[i], stream);
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow this help\n.SH EXAMPLES\n.nf\n", stream);
    args_print_man_text(spec->example, stream);
    fputs("\n.fi\n.SH SEE ALSO\n.BR microtome (1)\n", stream);
}
