/* action.h: commands whose first operand names the action on the others. */
#ifndef CLI_ACTION_H
#define CLI_ACTION_H
#include "cli/app.h"

/* options: of the command; operands: those after the action's name, at least one. */
typedef bool action_fn(struct app *app, const void *options, char *const *operands, int n_operands,
                       struct err *err);

struct action {
    const char *name;
    action_fn *run;
    const char *takes; /* its operands: "a folder of heatmaps" */
};

#define ACTIONS_MOST 8 /* of a command */

/* Runs the one of n actions that the first operand names. */
bool action_run(const struct action *actions, size_t n, const char *command, struct app *app,
                const void *options, const struct args_result *operands, struct err *err);
#endif
