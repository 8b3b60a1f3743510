/* cmd_synthesize.c: microtome synthesize ..: patches that no patient has, each command in its file.
 */
#include "cli/app.h"

extern const struct command cmd_synthesize_train, cmd_synthesize_sample, cmd_synthesize_evaluate,
    cmd_synthesize_audit, cmd_synthesize_epsilon;

static const struct command *const members[] = {
    &cmd_synthesize_train, &cmd_synthesize_sample,  &cmd_synthesize_evaluate,
    &cmd_synthesize_audit, &cmd_synthesize_epsilon, NULL,
};

const struct command cmd_synthesize = {
    .spec = { .name = "synthesize",
              .summary = "make synthetic patches, privately, and judge them" },
    .members = members,
};
