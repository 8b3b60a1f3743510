/* extract_inputs.c: the files that a store is made from, and which options fit together
 * (extract.h).
 */
#include <stdlib.h>
#include "patch/annotations.h"
#include "patch/extract.h"
#include "slide/slide_identity.h"

bool extract_check_target(enum patch_target target, enum label_rule rule, enum store_layout layout,
                          struct err *err)
{
    if (target == TARGET_TUMOR && rule > LABEL_CENTER)
        return err_set(err, ERR_USAGE, "--target %s: --label-rule %s does not use annotations",
                       target_text(target), label_rule_names[rule]);
    if (target != TARGET_NONE && layout != STORE_BLOCKS && layout != STORE_CLAM)
        return err_set(err, ERR_USAGE,
                       "--target: --layout %s has no place for it; use blocks or clam",
                       store_layout_names[layout]);
    return true;
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
