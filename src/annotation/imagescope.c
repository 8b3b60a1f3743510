/* imagescope.c: Aperio ImageScope XML -> regions.
 * Annotations/Annotation[@Name]/Regions/Region[@Type, @NegativeROA]/Vertices/Vertex[@X, @Y]. The
 * class is the name of the layer (Annotation); if it has none, the attribute "Description", which
 * ImageScope displays; and if that is empty too, the region's @Text. A region with NegativeROA="1"
 * is an exclusion. A rectangle (type 1) may be given by two corners; an ellipse (type 2) is given
 * by the box of its vertices; arrows and rulers (other types) are not areas. HALO's files have the
 * same root and are read by halo.c. */
#include "annotation/format.h"

#include <string.h>
#include <strings.h>
#include "annotation/shapes.h"
#include "base/xml.h"

enum region_type { FREEHAND, RECTANGLE, ELLIPSE, NO_AREA };

struct reading {
    struct drawing *drawing;
    char layer[DRAWING_NAME];
    bool in_region;
    bool inside; /* a Region that counts */
    enum region_type type;
};

static bool claims(const struct parsed_file *file)
{
    return !strcmp(file->xml_root, "Annotations");
}

static enum region_type type_of(const char *text)
{
    static const struct {
        const char *text;
        enum region_type type;
    } types[] = { { "", FREEHAND }, { "0", FREEHAND }, { "1", RECTANGLE }, { "2", ELLIPSE } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcasecmp(text, types[i].text))
            return types[i].type;
    return NO_AREA;
}

static bool start_region(struct reading *reading, const struct xml_element *element,
                         struct err *err)
{
    char type[DRAWING_NAME], text[DRAWING_NAME];
    double negative = 0;
    reading->in_region = true;
    if (!xml_number(element, "NegativeROA", false, &negative, err))
        return false;
    xml_text(element, "Type", type, sizeof type);
    reading->type = type_of(type);
    reading->inside = false;
    if (reading->type == NO_AREA) {
        drawing_ignore(reading->drawing, "arrow or ruler");
        return true;
    }
    xml_text(element, "Text", text, sizeof text);
    const char *name = class_is_none(reading->layer) ? text : reading->layer;
    int meaning = class_meaning(reading->drawing->map, name);
    if (negative != 0 && meaning >= 0)
        meaning = REGION_EXCLUSION;
    drawing_count_class(reading->drawing, meaning, name);
    reading->inside = region_counts(meaning);
    if (!reading->inside)
        return true;
    struct file_place place = { NULL, element->line };
    return drawing_region(reading->drawing, meaning, place, err) &&
           drawing_ring(reading->drawing, err);
}

static void take_description(struct reading *reading, const struct xml_element *element)
{
    char name[DRAWING_NAME];
    xml_text(element, "Name", name, sizeof name);
    if (!strcasecmp(name, "Description") && class_is_none(reading->layer))
        xml_text(element, "Value", reading->layer, sizeof reading->layer);
}

static bool on_start(void *user, const struct xml_element *element, struct err *err)
{
    struct reading *reading = user;
    double x, y;
    if (!strcmp(element->name, "Annotation"))
        xml_text(element, "Name", reading->layer, sizeof reading->layer);
    else if (!strcmp(element->name, "Attribute") && !reading->in_region)
        take_description(reading, element);
    else if (!strcmp(element->name, "Region"))
        return start_region(reading, element, err);
    else if (reading->inside && (!strcmp(element->name, "Vertex") || !strcmp(element->name, "V")))
        return xml_number(element, "X", true, &x, err) && xml_number(element, "Y", true, &y, err) &&
               drawing_point(reading->drawing, x, y, err);
    return true;
}

static bool on_end(void *user, const char *name, struct err *err)
{
    struct reading *reading = user;
    if (strcmp(name, "Region"))
        return true;
    reading->in_region = false;
    if (!reading->inside)
        return true;
    reading->inside = false;
    struct drawing *drawing = reading->drawing;
    if (reading->type == ELLIPSE)
        return shape_ellipse(drawing, err);
    if (reading->type == RECTANGLE && drawing->rings[drawing->n_rings - 1].n == 2)
        return shape_rectangle(drawing, err);
    return true;
}

static bool read_imagescope(const struct parsed_file *file, struct drawing *drawing,
                            struct err *err)
{
    static const struct xml_walker walker = { .start = on_start, .end = on_end };
    struct reading reading = { .drawing = drawing };
    return xml_walk(file->text, file->size, file->path, &walker, &reading, err);
}

const struct format format_imagescope = { "ImageScope", claims, read_imagescope };
