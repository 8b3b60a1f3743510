/* halo.c: HALO .annotations (Indica Labs) -> regions.
 * Annotations/Annotation[@Name]/Regions/Region[@Type, @HasEndcaps, @NegativeROA]/Vertices/V[@X,
 * @Y]. The root is the same as ImageScope's; HALO writes words for the types. The class is the name
 * of the layer (Annotation). A rectangle or an ellipse is given by two corners of its box; rulers
 * and other types are not areas. A region with NegativeROA="1" is a hole in the regions of its
 * layer and in no others. */
#include "annotation/format.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "annotation/shapes.h"
#include "base/xml.h"

#define MOST_POINTS 16000000 /* holes are copied into every region that they may touch */

struct reading {
    struct drawing *drawing;
    struct drawing layer; /* its regions as drawn, one ring each; holes are REGION_EXCLUSION */
    char name[DRAWING_NAME];
    bool inside; /* a Region that is an area */
    enum { POLYGON, RECTANGLE, ELLIPSE } type;
};

/* The walk ends at the first Region. */
static bool look_at_region(void *user, const struct xml_element *element, struct err *err)
{
    char type[DRAWING_NAME], caps[DRAWING_NAME];
    bool *halo = user;
    (void)err;
    if (strcmp(element->name, "Region"))
        return true;
    xml_text(element, "Type", type, sizeof type);
    *halo = isalpha((unsigned char)type[0]) || xml_text(element, "HasEndcaps", caps, sizeof caps);
    return false;
}

static bool claims(const struct parsed_file *file)
{
    static const struct xml_walker walker = { .start = look_at_region };
    bool halo = false;
    if (!strcmp(file->xml_root, "Annotations"))
        xml_walk(file->text, file->size, file->path, &walker, &halo, NULL);
    return halo;
}

static bool start_region(struct reading *reading, const struct xml_element *element,
                         struct err *err)
{
    char type[DRAWING_NAME];
    double negative = 0;
    xml_text(element, "Type", type, sizeof type);
    reading->inside = true;
    if (!strcasecmp(type, "Rectangle"))
        reading->type = RECTANGLE;
    else if (!strcasecmp(type, "Ellipse"))
        reading->type = ELLIPSE;
    else if (!strcasecmp(type, "Polygon") || !*type)
        reading->type = POLYGON;
    else
        reading->inside = false;
    if (!reading->inside) {
        drawing_ignore(reading->drawing, type);
        return true;
    }
    struct file_place place = { NULL, element->line };
    return xml_number(element, "NegativeROA", false, &negative, err) &&
           drawing_region(&reading->layer, negative != 0 ? REGION_EXCLUSION : 0, place, err) &&
           drawing_ring(&reading->layer, err);
}

static bool on_start(void *user, const struct xml_element *element, struct err *err)
{
    struct reading *reading = user;
    double x, y;
    if (!strcmp(element->name, "Annotation"))
        xml_text(element, "Name", reading->name, sizeof reading->name);
    else if (!strcmp(element->name, "Region"))
        return start_region(reading, element, err);
    else if (reading->inside && (!strcmp(element->name, "V") || !strcmp(element->name, "Vertex")))
        return xml_number(element, "X", true, &x, err) && xml_number(element, "Y", true, &y, err) &&
               drawing_point(&reading->layer, x, y, err);
    return true;
}

static bool end_region(struct reading *reading, struct err *err)
{
    struct drawing *layer = &reading->layer;
    if (!reading->inside)
        return true;
    reading->inside = false;
    if (reading->type == POLYGON)
        return true;
    if (layer->rings[layer->n_rings - 1].n < 2)
        return drawing_refuse(reading->drawing->path, layer->regions[layer->n_regions - 1].place,
                              err, "a rectangle or an ellipse needs two corners");
    return reading->type == RECTANGLE ? shape_rectangle(layer, err) : shape_ellipse(layer, err);
}

struct box {
    double x0, y0, x1, y1;
    size_t region; /* of the layer */
};

static struct box box_of(const struct drawing *layer, size_t region)
{
    const struct drawn_ring *ring = &layer->rings[layer->regions[region].first];
    struct box box = { INFINITY, INFINITY, -INFINITY, -INFINITY, region };
    for (size_t i = ring->first; i < ring->first + ring->n; i++) {
        box.x0 = fmin(box.x0, layer->xy[2 * i]), box.x1 = fmax(box.x1, layer->xy[2 * i]);
        box.y0 = fmin(box.y0, layer->xy[2 * i + 1]), box.y1 = fmax(box.y1, layer->xy[2 * i + 1]);
    }
    return box;
}

static bool overlap(const struct box *a, const struct box *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

/* The holes of a layer, from top to bottom: a region needs to look only at those near it. */
struct holes {
    struct box *boxes; /* [n] */
    size_t n;
    double tallest; /* height */
};

static int from_top(const void *left, const void *right)
{
    const struct box *a = left, *b = right;
    if (a->y0 != b->y0)
        return a->y0 < b->y0 ? -1 : 1;
    return (a->region > b->region) - (a->region < b->region);
}

static bool find_holes(const struct drawing *layer, struct holes *out, struct err *err)
{
    *out = (struct holes){ .boxes = calloc(layer->n_regions + 1, sizeof *out->boxes) };
    if (!out->boxes)
        return err_memory(err, layer->path);
    for (size_t i = 0; i < layer->n_regions; i++) {
        if (layer->regions[i].meaning != REGION_EXCLUSION)
            continue;
        struct box box = box_of(layer, i);
        out->boxes[out->n++] = box;
        out->tallest = fmax(out->tallest, box.y1 - box.y0);
    }
    qsort(out->boxes, out->n, sizeof *out->boxes, from_top);
    return true;
}

/* The first hole that begins at y or below. */
static size_t first_from(const struct holes *holes, double y)
{
    size_t low = 0, high = holes->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (holes->boxes[middle].y0 < y)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool copy_ring(const struct drawing *layer, size_t region, struct drawing *to,
                      struct err *err)
{
    const struct drawn_ring *ring = &layer->rings[layer->regions[region].first];
    bool ok = drawing_ring(to, err);
    for (size_t i = ring->first; ok && i < ring->first + ring->n; i++)
        ok = drawing_point(to, layer->xy[2 * i], layer->xy[2 * i + 1], err);
    return ok;
}

/* Region i of the layer with those holes of the layer that may touch it. */
static bool add_region(const struct reading *reading, const struct holes *holes, size_t i,
                       struct err *err)
{
    const struct drawing *layer = &reading->layer;
    struct drawing *to = reading->drawing;
    int meaning = drawing_class(to, reading->name);
    if (!region_counts(meaning))
        return true;
    if (!drawing_region(to, meaning, layer->regions[i].place, err) || !copy_ring(layer, i, to, err))
        return false;
    struct box box = box_of(layer, i);
    for (size_t k = first_from(holes, box.y0 - holes->tallest);
         k < holes->n && holes->boxes[k].y0 < box.y1; k++) {
        if (!overlap(&box, &holes->boxes[k]))
            continue;
        if (to->n_points > MOST_POINTS)
            return drawing_refuse(to->path, layer->regions[i].place, err,
                                  "more than %d points with the holes of the layer", MOST_POINTS);
        if (!copy_ring(layer, holes->boxes[k].region, to, err))
            return false;
    }
    return true;
}

static bool end_layer(struct reading *reading, struct err *err)
{
    struct drawing *layer = &reading->layer;
    struct holes holes;
    bool ok = find_holes(layer, &holes, err);
    for (size_t i = 0; ok && i < layer->n_regions; i++)
        ok = layer->regions[i].meaning == REGION_EXCLUSION || add_region(reading, &holes, i, err);
    if (ok && holes.n == layer->n_regions && holes.n > 0)
        drawing_ignore(reading->drawing, "NegativeROA in a layer without other regions");
    layer->n_points = layer->n_rings = layer->n_regions = 0;
    free(holes.boxes);
    return ok;
}

static bool on_end(void *user, const char *name, struct err *err)
{
    struct reading *reading = user;
    if (!strcmp(name, "Region"))
        return end_region(reading, err);
    return strcmp(name, "Annotation") != 0 || end_layer(reading, err);
}

static bool read_halo(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    static const struct xml_walker walker = { .start = on_start, .end = on_end };
    struct reading reading = { .drawing = drawing, .layer = { .path = file->path } };
    bool ok = xml_walk(file->text, file->size, file->path, &walker, &reading, err);
    drawing_free(&reading.layer);
    return ok;
}

const struct format format_halo = { "HALO", claims, read_halo };
