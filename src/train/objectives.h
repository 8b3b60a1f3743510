/* objectives.h: the table of objectives, and what the config says about them. */
#ifndef TRAIN_OBJECTIVES_H
#define TRAIN_OBJECTIVES_H
#include "train/objective.h"

/* The objective of a config, which was settled. */
const struct objective *objective_of(const struct train_config *config);

/* Chooses what is left to the objective (objective, train.loss, network.activation, train.monitor),
 * without opening a file. Errors name the key and what the objective takes. */
bool objective_resolve(struct train_config *config, struct err *err);
/* The same, then refuses data of a kind that the objective does not take, and lets it decide what
 * it decides itself; it may open a model. Call it between config_read and train_run. path: of the
 * config, for messages; may be NULL. */
bool objective_settle(struct train_config *config, const char *path, struct err *err);
#endif
