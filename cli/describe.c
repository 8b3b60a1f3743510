/* describe.c: --help, the man page and the shell completion, all from the command tables. */
#include "cli/describe.h"

#include <string.h>
#include "base/version.h"
#include "cli/app.h"

void describe_program(FILE *stream)
{
    fputs("microtome: deep learning on whole slide images, from a laptop to a cluster\n\n"
          "Usage: microtome <command> [options] ...\n\nCommands, in workflow order:\n",
          stream);
    for (size_t i = 0; commands[i]; i++)
        fprintf(stream, "  %-10s %s\n", commands[i]->spec.name, commands[i]->spec.summary);
    fputs("\n'microtome <command> --help' explains a command and shows an example.\n"
          "'microtome --version' prints the version.\n",
          stream);
}

void describe_family(const struct command *family, FILE *stream)
{
    fprintf(stream,
            "microtome %s: %s\n\nUsage: microtome %s <command> [options] ...\n\nCommands:\n",
            family->spec.name, family->spec.summary, family->spec.name);
    for (size_t i = 0; family->members[i]; i++)
        fprintf(stream, "  %-20s %s\n", family->members[i]->spec.name,
                family->members[i]->spec.summary);
    fprintf(stream, "\n'microtome %s <command> --help' explains a command and shows an example.\n",
            family->spec.name);
}

/* The name as that of a page or a file: "synthesize-train". */
static void print_joined(const char *name, const char *hyphen, FILE *stream)
{
    for (; *name; name++)
        if (*name == ' ')
            fputs(hyphen, stream);
        else
            fputc(*name, stream);
}

static void man_entry(const struct command *command, void *stream)
{
    fputs(".TP\n.BR microtome\\-", stream);
    print_joined(command->spec.name, "\\-", stream);
    fputs(" (1)\n", stream);
    args_print_man_text(command->spec.summary, stream);
    fputc('\n', stream);
}

static void describe_man(FILE *stream)
{
    fprintf(stream, ".TH MICROTOME 1 \"\" \"microtome %s\" \"User commands\"\n", MICROTOME_VERSION);
    fputs(".SH NAME\nmicrotome \\- deep learning on whole slide images\n"
          ".SH SYNOPSIS\n\\fBmicrotome\\fR \\fIcommand\\fR [options] ...\n"
          ".SH DESCRIPTION\nCuts whole slide images into patches, learns from them and maps the "
          "result back onto the slide. Results go to standard output or to files, messages and "
          "progress to standard error.\n.SH COMMANDS\nIn workflow order; each has its own page.\n",
          stream);
    command_each(man_entry, stream);
    fputs(".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nfailed, or some slides failed\n.TP\n2\nwrong "
          "usage\n.TP\n75\nstopped with everything saved; continue with the same command and "
          "\\-\\-resume\n"
          ".TP\n130\nstopped by the user\n.SH FILES\n.TP\n\\fIDIR\\fR/run.json, "
          "\\fIDIR\\fR/slides.csv\nthe settings of a run and the result for every slide\n",
          stream);
}

/* The possible values of an option with a fixed set of choices. */
static void complete_choices(const struct args_spec *spec, FILE *stream)
{
    for (size_t j = 0; j < spec->n_args; j++) {
        if (spec->args[j].type != ARG_CHOICE)
            continue;
        fprintf(stream, "    \"%s:--%s\") words=\"", spec->name, spec->args[j].name);
        for (const char *const *choice = spec->args[j].choices; *choice; choice++)
            fprintf(stream, "%s ", *choice);
        fputs("\" ;;\n", stream);
    }
}

static void complete_options(const struct command *command, void *stream)
{
    const struct args_spec *spec = &command->spec;
    complete_choices(spec, stream);
    fprintf(stream, "    \"%s:\"*) [[ $word != -* ]] || words=\"", spec->name);
    for (size_t j = 0; j < spec->n_args; j++)
        fprintf(stream, "--%s ", spec->args[j].name);
    fputs("--help\" ;;\n", stream);
}

/* The second word of the commands of a family. */
static void complete_members(const struct command *family, FILE *stream)
{
    size_t skip = strlen(family->spec.name) + 1;
    fprintf(stream,
            "    if [ \"${COMP_WORDS[1]}\" = %s ]; then\n        command+=\" ${COMP_WORDS[2]}\"\n"
            "        if [ \"$COMP_CWORD\" -eq 2 ]; then\n            COMPREPLY=($(compgen -W \"",
            family->spec.name);
    for (size_t i = 0; family->members[i]; i++)
        fprintf(stream, "%s ", family->members[i]->spec.name + skip);
    fputs("--help\" -- \"$word\"))\n            return\n        fi\n    fi\n", stream);
}

static void describe_completion(FILE *stream)
{
    fputs("# bash completion for microtome, made from its option tables\n"
          "_microtome() {\n    local word=${COMP_WORDS[COMP_CWORD]}\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"",
          stream);
    for (size_t i = 0; commands[i]; i++)
        fprintf(stream, "%s ", commands[i]->spec.name);
    fputs("--help --version\" -- \"$word\"))\n        return\n    fi\n"
          "    local words= command=${COMP_WORDS[1]}\n",
          stream);
    for (size_t i = 0; commands[i]; i++)
        if (commands[i]->members)
            complete_members(commands[i], stream);
    fputs("    case $command:${COMP_WORDS[COMP_CWORD - 1]} in\n", stream);
    command_each(complete_options, stream);
    fputs("    esac\n    if [ -n \"$words\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    else\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
          "complete -o filenames -F _microtome microtome\n",
          stream);
}

static void print_name(const struct command *command, void *stream)
{
    print_joined(command->spec.name, "-", stream);
    fputc('\n', stream);
}

int describe_for_build(const char *what, FILE *stream)
{
    const struct command *command = strncmp(what, "man-", 4) == 0 ? command_called(what + 4) : NULL;
    if (command)
        args_print_man(&command->spec, MICROTOME_VERSION, stream);
    else if (strcmp(what, "man") == 0)
        describe_man(stream);
    else if (strcmp(what, "commands") == 0)
        command_each(print_name, stream);
    else if (strcmp(what, "completion") == 0)
        describe_completion(stream);
    else
        return 2;
    return fflush(stream) == 0 ? 0 : 1;
}
