/* action.c: see action.h. */
#include "cli/action.h"

#include <string.h>
#include "base/names.h"

bool action_run(const struct action *actions, size_t n, const char *command, struct app *app,
                const void *options, const struct args_result *operands, struct err *err)
{
    const char *names[ACTIONS_MOST], *word = operands->operands[0];
    for (size_t i = 0; i < n; i++) {
        names[i] = actions[i].name;
        if (strcmp(word, names[i]) != 0)
            continue;
        if (operands->n_operands < 2)
            return err_set(err, ERR_USAGE, "'%s' needs %s; see 'microtome %s --help'", word,
                           actions[i].takes, command);
        return actions[i].run(app, options, operands->operands + 1, operands->n_operands - 1, err);
    }
    return names_refuse(word, names, n, err);
}
