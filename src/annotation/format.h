/* format.h: the interface of an annotation reader: does it recognise the file, and read it. The
 * table of readers is in annotation.c; a new format needs one file and one line there. */
#ifndef ANNOTATION_FORMAT_H
#define ANNOTATION_FORMAT_H
#include <jansson.h>
#include "annotation/annotation.h"
#include "annotation/drawing.h"
#include "base/err.h"

/* A file whose outermost layer has been parsed: XML or JSON; others as they are. */
struct parsed_file {
    const char *path;
    const char *text;
    size_t size;
    char xml_root[DRAWING_NAME]; /* name of the root element; "" if JSON */
    const json_t *json;          /* NULL if XML */
    struct annotation_slide slide;
    bool classes_only; /* only the classes matter: the slide's size may be unknown */
};

struct format {
    const char *name;
    bool (*claims)(const struct parsed_file *file);
    bool (*read)(const struct parsed_file *file, struct drawing *drawing, struct err *err);
};

extern const struct format format_asap, format_halo, format_imagescope, format_geojson, format_ncrf,
    format_coco, format_labels;
#endif
