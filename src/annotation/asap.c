/* asap.c: ASAP XML (CAMELYON16 and 17) -> regions.
 * ASAP_Annotations/Annotations/Annotation[@Type, @PartOfGroup]/Coordinates/Coordinate[@Order, @X,
 * @Y] and ASAP_Annotations/AnnotationGroups/Group[@Name, @PartOfGroup]. A group with an unknown
 * name has the meaning of its parent group. */
#include "annotation/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/xml.h"
#include "base/array.h"

#define MAX_GROUPS 1024 /* more than anyone creates by hand */
#define MAX_NESTING 16

struct group {
    char name[DRAWING_NAME], parent[DRAWING_NAME];
};

struct groups {
    struct group *items; /* [MAX_GROUPS] */
    size_t n;
};

struct vertex {
    double order, x, y;
    size_t read_as; /* keeps the order of the file among equals */
};

struct reading {
    struct drawing *drawing;
    const struct groups *groups;
    bool inside; /* an Annotation that counts */
    bool ordered;
    struct vertex *vertices;
    size_t n;
    int64_t room;
};

static bool claims(const struct parsed_file *file)
{
    return !strcmp(file->xml_root, "ASAP_Annotations");
}

static bool take_group(void *user, const struct xml_element *element, struct err *err)
{
    struct groups *groups = user;
    if (strcmp(element->name, "Group"))
        return true;
    if (groups->n == MAX_GROUPS)
        return err_set(err, ERR_FORMAT, "%s:%lld: more than %d groups", element->path,
                       (long long)element->line, MAX_GROUPS);
    struct group *group = &groups->items[groups->n++];
    xml_text(element, "Name", group->name, sizeof group->name);
    xml_text(element, "PartOfGroup", group->parent, sizeof group->parent);
    return true;
}

static const struct group *find_group(const struct groups *groups, const char *name)
{
    for (size_t i = 0; i < groups->n; i++)
        if (!strcmp(groups->items[i].name, name))
            return &groups->items[i];
    return NULL;
}

static int class_of_group(const struct class_map *map, const struct groups *groups,
                          const char *name)
{
    int meaning = class_meaning(map, name);
    for (int level = 0; meaning == REGION_UNKNOWN && level < MAX_NESTING; level++) {
        const struct group *group = find_group(groups, name);
        if (!group || !group->parent[0] || !strcasecmp(group->parent, "None"))
            break;
        name = group->parent;
        meaning = class_meaning(map, name);
    }
    return meaning;
}

static bool is_no_area(const char *type)
{
    static const char *const types[] = { "Dot", "PointSet", "Measurement" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcasecmp(type, types[i]))
            return true;
    return false;
}

static bool start_annotation(struct reading *reading, const struct xml_element *element,
                             struct err *err)
{
    char type[DRAWING_NAME], group[DRAWING_NAME];
    xml_text(element, "Type", type, sizeof type);
    xml_text(element, "PartOfGroup", group, sizeof group);
    reading->inside = false;
    if (is_no_area(type)) {
        drawing_ignore(reading->drawing, type);
        return true;
    }
    int meaning = class_of_group(reading->drawing->map, reading->groups, group);
    drawing_count_class(reading->drawing, meaning, group);
    reading->inside = region_counts(meaning);
    reading->ordered = true;
    reading->n = 0;
    if (!reading->inside)
        return true;
    struct file_place place = { NULL, element->line };
    return drawing_region(reading->drawing, meaning, place, err) &&
           drawing_ring(reading->drawing, err);
}

static bool take_coordinate(struct reading *reading, const struct xml_element *element,
                            struct err *err)
{
    struct vertex vertex = { .order = (double)reading->n, .read_as = reading->n };
    if (!xml_number(element, "Order", false, &vertex.order, err) ||
        !xml_number(element, "X", true, &vertex.x, err) ||
        !xml_number(element, "Y", true, &vertex.y, err))
        return false;
    if (!array_grow(&reading->vertices, &reading->room, (int64_t)reading->n + 1, sizeof vertex,
                    "an annotation", err))
        return false;
    if (reading->n > 0 && vertex.order < reading->vertices[reading->n - 1].order)
        reading->ordered = false;
    reading->vertices[reading->n++] = vertex;
    return true;
}

static bool on_start(void *user, const struct xml_element *element, struct err *err)
{
    struct reading *reading = user;
    if (!strcmp(element->name, "Annotation"))
        return start_annotation(reading, element, err);
    if (!strcmp(element->name, "Coordinate") && reading->inside)
        return take_coordinate(reading, element, err);
    return true;
}

static int by_order(const void *left, const void *right)
{
    const struct vertex *a = left, *b = right;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->read_as < b->read_as ? -1 : 1;
}

static bool on_end(void *user, const char *name, struct err *err)
{
    struct reading *reading = user;
    if (strcmp(name, "Annotation") || !reading->inside)
        return true;
    reading->inside = false;
    if (!reading->ordered)
        qsort(reading->vertices, reading->n, sizeof *reading->vertices, by_order);
    for (size_t i = 0; i < reading->n; i++)
        if (!drawing_point(reading->drawing, reading->vertices[i].x, reading->vertices[i].y, err))
            return false;
    return true;
}

/* Reads the text twice: the groups come after the annotations that refer to them. */
static bool read_asap(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    static const struct xml_walker group_walker = { .start = take_group };
    static const struct xml_walker region_walker = { .start = on_start, .end = on_end };
    struct groups groups = { .items = calloc(MAX_GROUPS, sizeof *groups.items) };
    struct reading reading = { .drawing = drawing, .groups = &groups };
    bool ok = groups.items
                  ? xml_walk(file->text, file->size, file->path, &group_walker, &groups, err) &&
                        xml_walk(file->text, file->size, file->path, &region_walker, &reading, err)
                  : err_memory(err, file->path);
    free(reading.vertices);
    free(groups.items);
    return ok;
}

const struct format format_asap = { "ASAP", claims, read_asap };
