/* store_facts.c: see store_facts.h. One table, read and written by the same loop. */
#include "patch/store_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum fact_type { TEXT, OPTIONAL_TEXT, INTEGER, REAL, REALS };

struct fact {
    const char *name;
    enum fact_type type;
    size_t offset;
    hsize_t n; /* REALS */
};

#define FACT(field, type)                                                                          \
    {                                                                                              \
#field, type, offsetof(struct store_facts, field), 1                                       \
    }
#define FACTS(field, n)                                                                            \
    {                                                                                              \
#field, REALS, offsetof(struct store_facts, field), n                                      \
    }

static const struct fact table[] = {
    FACT(program, TEXT),
    FACT(slide, TEXT),
    FACT(file, TEXT),
    FACT(vendor, TEXT),
    FACT(patient, TEXT),
    FACT(node, TEXT),
    FACT(center, TEXT),
    FACT(split, TEXT),
    FACT(slide_label, TEXT),
    FACT(mode, TEXT),
    FACT(options, TEXT),
    FACT(inputs, TEXT),
    FACT(tissue_method, TEXT),
    FACT(label_rule, TEXT),
    FACT(class_map, TEXT),
    FACT(stain_method, TEXT),
    FACT(width_l0, INTEGER),
    FACT(height_l0, INTEGER),
    FACT(level, INTEGER),
    FACT(level_width, INTEGER),
    FACT(level_height, INTEGER),
    FACT(patch, INTEGER),
    FACT(tile, INTEGER),
    FACT(margin, INTEGER),
    FACT(stride, INTEGER),
    FACT(seed, INTEGER),
    FACT(mpp_l0, REAL),
    FACT(mpp, REAL),
    FACT(ratio, REAL),
    FACT(downsample, REAL),
    FACT(objective, REAL),
    FACTS(stain_matrix, 6),
    FACTS(stain_p99, 2),
    FACTS(stain_lab_mean, 3),
    FACTS(stain_lab_std, 3),
    FACTS(target_matrix, 6),
    FACTS(target_p99, 2),
    FACTS(target_lab_mean, 3),
    FACTS(target_lab_std, 3),
    FACT(class_names, OPTIONAL_TEXT),
    FACT(synthetic, OPTIONAL_TEXT),
    FACT(slide_table, OPTIONAL_TEXT),
    FACT(survival_columns, OPTIONAL_TEXT),
};
#define N_FACTS (sizeof table / sizeof *table)

static bool put_fact(hid_t file, const struct fact *fact, const struct store_facts *facts)
{
    const void *value = (const char *)facts + fact->offset;
    const char *const *text = value;
    switch (fact->type) {
    case TEXT:
        return h5_put_text(file, fact->name, *text ? *text : "");
    case OPTIONAL_TEXT:
        return !*text || !**text || h5_put_text(file, fact->name, *text);
    case INTEGER:
        return h5_put_int(file, fact->name, *(const int64_t *)value);
    case REAL:
        return h5_put_real(file, fact->name, *(const double *)value);
    case REALS:
        return h5_put_reals(file, fact->name, value, fact->n);
    }
    return false;
}

static bool has_survival(const struct store_facts *facts)
{
    return facts->survival_columns && facts->survival_columns[0] &&
           isfinite(facts->survival_time) && facts->survival_event >= 0;
}

bool facts_put(hid_t file, enum store_layout layout, const struct store_facts *facts)
{
    bool ok = h5_put_text(file, "format", STORE_FORMAT) &&
              h5_put_int(file, "version", STORE_VERSION) &&
              h5_put_text(file, "layout", store_layout_names[layout]);
    for (size_t i = 0; ok && i < N_FACTS; i++)
        ok = put_fact(file, &table[i], facts);
    if (ok && has_survival(facts))
        ok = h5_put_real(file, "survival_time", facts->survival_time) &&
             h5_put_int(file, "survival_event", facts->survival_event);
    return ok;
}

bool facts_get(hid_t file, struct store_facts *out)
{
    *out = (struct store_facts){ .survival_time = NAN, .survival_event = -1 };
    h5_get_real(file, "survival_time", &out->survival_time);
    h5_get_int(file, "survival_event", &out->survival_event);
    bool ok = true;
    for (size_t i = 0; i < N_FACTS; i++) {
        void *value = (char *)out + table[i].offset;
        char **text = value;
        switch (table[i].type) {
        case TEXT:
        case OPTIONAL_TEXT:
            if (!h5_get_text(file, table[i].name, text))
                *text = strdup("");
            ok = ok && *text;
            break;
        case INTEGER:
            h5_get_int(file, table[i].name, value);
            break;
        case REAL:
            h5_get_real(file, table[i].name, value);
            break;
        case REALS:
            h5_get_reals(file, table[i].name, value, table[i].n);
            break;
        }
    }
    return ok;
}

void facts_free(struct store_facts *facts)
{
    for (size_t i = 0; i < N_FACTS; i++)
        if (table[i].type == TEXT || table[i].type == OPTIONAL_TEXT)
            free(*(char **)(void *)((char *)facts + table[i].offset));
    *facts = (struct store_facts){ 0 };
}
