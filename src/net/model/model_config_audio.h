/* model_config_audio.h: private to the model's config.json: its part about recordings. */
#ifndef NET_MODEL_MODEL_CONFIG_AUDIO_H
#define NET_MODEL_MODEL_CONFIG_AUDIO_H
#include <jansson.h>
#include "net/model/model_config.h"

struct json_out;

/* The object "audio"; errors name `path` and the key. What was read before an error is in *out. */
bool model_audio_read(const json_t *json, const char *path, struct model_audio *out,
                      struct err *err);
void model_audio_write(struct json_out *json, const struct model_audio *audio);
void model_audio_free(struct model_audio *audio);
#endif
