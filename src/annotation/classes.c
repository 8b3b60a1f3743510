/* classes.c: the name of a group, layer or class -> tumour, exclusion or neither. */
#include "annotation/classes.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum region_class meaning;
} meanings[] = {
    { "_0", REGION_TUMOUR }, /* CAMELYON16 */
    { "_1", REGION_TUMOUR },
    { "_2", REGION_EXCLUSION },
    { "Tumor", REGION_TUMOUR },
    { "Exclusion", REGION_EXCLUSION },
    { "metastases", REGION_TUMOUR }, /* CAMELYON17 */
    { "normal", REGION_EXCLUSION },
    { "Metastasis", REGION_TUMOUR }, /* QuPath and ImageScope, as people write them */
    { "Tumour", REGION_TUMOUR },
    { "Cancer", REGION_TUMOUR },
    { "Carcinoma", REGION_TUMOUR },
    { "Lesion", REGION_TUMOUR },
    { "Exclude", REGION_EXCLUSION },
    { "Hole", REGION_EXCLUSION },
    { "Ignore", REGION_EXCLUSION },
    { "Ignore*", REGION_EXCLUSION },
    { "", REGION_TUMOUR }, /* no class */
    { "None", REGION_TUMOUR },
};

enum region_class class_of(const char *name)
{
    if (!name)
        return REGION_TUMOUR;
    while (isspace((unsigned char)*name))
        name++;
    size_t length = strcspn(name, ":");
    while (length > 0 && isspace((unsigned char)name[length - 1]))
        length--;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strlen(meanings[i].name) == length && !strncasecmp(meanings[i].name, name, length))
            return meanings[i].meaning;
    return REGION_OTHER;
}
