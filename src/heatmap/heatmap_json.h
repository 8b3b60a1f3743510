/* heatmap_json.h: the facts of a heatmap as keys of a JSON object; heatmap.json and plan.json both
 * contain them. Private to this folder. */
#ifndef HEATMAP_HEATMAP_JSON_H
#define HEATMAP_HEATMAP_JSON_H
#include <jansson.h>
#include "base/json.h"
#include "heatmap/heatmap.h"

/* Into the object that is open. */
void heatmap_json_put(struct json_out *json, const struct heatmap_info *info);
/* All values are checked. *out is the caller's; free with heatmap_info_free. */
bool heatmap_json_get(const json_t *object, const char *path, struct heatmap_info *out,
                      struct err *err);
void heatmap_json_put_check(struct json_out *json, const char *key,
                            const struct heatmap_check *check);
bool heatmap_json_get_check(const json_t *object, const char *key, struct heatmap_check *out);
/* Reads and parses a JSON object. *out is the caller's; json_decref. */
bool heatmap_json_load(const char *path, json_t **out, struct err *err);
#endif
