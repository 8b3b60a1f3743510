/* classes.h: what the name of a group, layer or class means. */
#ifndef ANNOTATION_CLASSES_H
#define ANNOTATION_CLASSES_H

enum region_class {
    REGION_TUMOUR,
    REGION_EXCLUSION, /* a hole in every tumour region */
    REGION_OTHER,     /* ignored and counted */
};

/* Capitals and outer blanks do not matter. A derived class of QuPath ("Tumor: Positive") means
 * what its first part means. NULL, "" and ASAP's "None" are no class: tumour. */
enum region_class class_of(const char *name);
#endif
