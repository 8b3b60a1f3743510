/* extract_inputs.c: the files that a store is made from, which options fit together, and counts of
 * labels (extract.h). */
#include <stdlib.h>
#include <string.h>
#include "patch/annotations.h"
#include "patch/extract.h"
#include "slide/slide_identity.h"

bool extract_check_target(const struct patch_target *target, enum label_rule rule,
                          enum store_layout layout, struct err *err)
{
    if (target->kind == TARGET_CLASS && rule > LABEL_CENTER)
        return err_set(err, ERR_USAGE, "--target %s: --label-rule %s does not use annotations",
                       target->text, label_rule_names[rule]);
    if (target->kind != TARGET_NONE && layout != STORE_BLOCKS && layout != STORE_CLAM)
        return err_set(err, ERR_USAGE,
                       "--target: --layout %s has no place for it; use blocks or clam",
                       store_layout_names[layout]);
    return true;
}

bool extract_used_icc(const char *options)
{
    return options && strstr(options, " icc=srgb");
}

bool extract_inputs(const struct slide_entry *entry, const struct extract_options *options,
                    char out[INPUTS_ROOM], struct err *err)
{
    struct identity identity;
    char *annotation = NULL;
    out[0] = 0;
    if (!slide_identity(entry->path, &identity, err))
        return false;
    inputs_add(out, "slide", &identity);
    bool drawn = options->label_rule <= LABEL_CENTER;
    bool ok = !drawn || annotations_path(entry, options->annotations, &annotation, err);
    if (ok && annotation) {
        ok = identity_of_file(annotation, &identity, err);
        inputs_add(out, "annotation", &identity);
    }
    free(annotation);
    if (ok && options->stain != STAIN_NONE && options->stain_template) {
        ok = identity_of_file(options->stain_template, &identity, err);
        inputs_add(out, "template", &identity);
    }
    return ok;
}

bool extract_check_inputs(const struct slide_entry *entry, const struct extract_options *options,
                          const char *then, struct err *err)
{
    char now[INPUTS_ROOM];
    return !*then || (extract_inputs(entry, options, now, err) &&
                      inputs_hold(entry->path, then, now, "run the command again", err));
}

void extract_count(const struct class_map *map, const struct patch_list *patches,
                   struct extract_result *result)
{
    for (int64_t i = 0; i < patches->n; i++) {
        int label = patches->items[i].label;
        if (class_map_is_plain(map) && label > 0)
            label = class_map_positive(map);
        if (label >= 0 && label < class_map_n(map))
            result->per_class[label]++;
    }
}

int64_t extract_labelled(const struct extract_result *result)
{
    int64_t n = 0;
    for (int i = 0; i < CLASS_MOST; i++)
        n += result->per_class[i];
    return n;
}

int extract_columns(const struct class_map *map, int *places)
{
    int n = class_map_n(map);
    for (int i = 0; i < n; i++)
        places[i] = class_map_is_plain(map) ? n - 1 - i : i;
    return n;
}
