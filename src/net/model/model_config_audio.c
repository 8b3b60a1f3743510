/* model_config_audio.c: see model_config_audio.h. */
#include "net/model/model_config_audio.h"
#include <stdlib.h>
#include <string.h>
#include "base/json.h"

static const char *const rules[] = { "truncate", "refuse" };

static bool read_number(const json_t *json, const char *path, const char *key, int64_t max,
                        int64_t *out, struct err *err)
{
    const json_t *number = json_object_get(json, key);
    *out = json_integer_value(number);
    return (json_is_integer(number) && *out >= 1 && *out <= max) ||
           err_set(err, ERR_FORMAT,
                   "%s: 'microtome: audio: %s' must be a whole number between 1 and %lld", path,
                   key, (long long)max);
}

/* Absent leaves *out NULL, if it may be absent. */
static bool read_column(const json_t *json, const char *path, const char *key, bool needed,
                        char **out, struct err *err)
{
    const char *text = json_string_value(json_object_get(json, key));
    if (!text && (needed || json_object_get(json, key)))
        return err_set(err, ERR_FORMAT, "%s: 'microtome: audio: %s' must be text", path, key);
    return !text || (*out = strdup(text)) || err_memory(err, path);
}

bool model_audio_read(const json_t *json, const char *path, struct model_audio *out,
                      struct err *err)
{
    const char *rule = json_string_value(json_object_get(json, "long"));
    if (!json_is_object(json))
        return err_set(err, ERR_FORMAT,
                       "%s: 'microtome: audio' must be an object that says how recordings become "
                       "frames",
                       path);
    if (!rule || (strcmp(rule, rules[0]) != 0 && strcmp(rule, rules[1]) != 0))
        return err_set(err, ERR_FORMAT, "%s: 'microtome: audio: long' must be truncate or refuse",
                       path);
    out->refuse = strcmp(rule, rules[1]) == 0;
    return read_number(json, path, "sample_rate_hz", 192000, &out->sample_rate_hz, err) &&
           read_number(json, path, "window_samples", 1 << 16, &out->window_samples, err) &&
           read_number(json, path, "hop_samples", 1 << 16, &out->hop_samples, err) &&
           read_number(json, path, "mels", 512, &out->mels, err) &&
           read_number(json, path, "max_frames", 1 << 16, &out->max_frames, err) &&
           read_column(json, path, "column", true, &out->column, err) &&
           read_column(json, path, "label", false, &out->label, err) &&
           read_column(json, path, "id", false, &out->id, err);
}

void model_audio_write(struct json_out *json, const struct model_audio *audio)
{
    json_out_object(json, "audio");
    json_out_int(json, "sample_rate_hz", audio->sample_rate_hz);
    json_out_int(json, "window_samples", audio->window_samples);
    json_out_int(json, "hop_samples", audio->hop_samples);
    json_out_int(json, "mels", audio->mels);
    json_out_int(json, "max_frames", audio->max_frames);
    json_out_text(json, "long", rules[audio->refuse]);
    json_out_text(json, "column", audio->column);
    if (audio->label)
        json_out_text(json, "label", audio->label);
    if (audio->id && audio->id[0])
        json_out_text(json, "id", audio->id);
    json_out_close_object(json);
}

void model_audio_free(struct model_audio *audio)
{
    free(audio->column);
    free(audio->label);
    free(audio->id);
}
