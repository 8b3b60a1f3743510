/* labels.c: label images: see nuclei.h. */
#include <stdlib.h>
#include "nuclei/nuclei.h"

void nuclei_labels_free(struct nuclei_labels *labels)
{
    free(labels->labels);
    *labels = (struct nuclei_labels){ 0 };
}

bool nuclei_labels_tidy(struct nuclei_labels *labels, int64_t min_px, int64_t max_px,
                        struct err *err)
{
    int64_t all = labels->width * labels->height;
    size_t room = (size_t)labels->n + 1;
    int64_t *counts = calloc(room, sizeof *counts);
    int32_t *names = calloc(room, sizeof *names);
    bool ok = counts && names;
    if (!ok) {
        err_memory(err, "labels");
        goto done;
    }
    for (int64_t i = 0; i < all; i++)
        counts[labels->labels[i]]++;
    int32_t n = 0;
    for (int64_t i = 0; i < all; i++) {
        int32_t old = labels->labels[i];
        bool kept = old && counts[old] >= min_px && counts[old] <= max_px;
        if (kept && !names[old])
            names[old] = ++n;
        labels->labels[i] = kept ? names[old] : 0;
    }
    labels->n = n;
done:
    free(names);
    free(counts);
    return ok;
}
