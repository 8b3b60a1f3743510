/* geojson.c: GeoJSON as QuPath writes it -> regions.
 * A FeatureCollection, a Feature, or a bare list of features; Polygon and MultiPolygon with holes.
 * The class is properties.classification.name, or the parts of .names ("Tumor: Positive"). QuPath
 * objects other than annotations (detections, cells, tiles), points and lines are not areas. */
#include "annotation/format.h"

#include <stdio.h>
#include <string.h>

#define MAX_NESTING 8 /* of geometry collections */

struct reading {
    struct drawing *drawing;
    struct file_place place;
    int meaning;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool is_type(const json_t *object, const char *type)
{
    return !strcmp(text_of(object, "type"), type);
}

static bool claims(const struct parsed_file *file)
{
    const json_t *json = file->json;
    if (json_is_array(json))
        return json_array_size(json) == 0 || is_type(json_array_get(json, 0), "Feature");
    return json && (is_type(json, "FeatureCollection") || is_type(json, "Feature"));
}

static bool read_ring(const struct reading *reading, const json_t *ring, struct err *err)
{
    if (!json_is_array(ring))
        return drawing_refuse(reading->drawing->path, reading->place, err,
                              "a ring of the polygon is not a list of points");
    if (!drawing_ring(reading->drawing, err))
        return false;
    for (size_t i = 0; i < json_array_size(ring); i++) {
        const json_t *x = json_array_get(json_array_get(ring, i), 0);
        const json_t *y = json_array_get(json_array_get(ring, i), 1);
        if (!json_is_number(x) || !json_is_number(y))
            return drawing_refuse(reading->drawing->path, reading->place, err,
                                  "point %zu of a ring is not [x, y]", i + 1);
        if (!drawing_point(reading->drawing, json_number_value(x), json_number_value(y), err))
            return false;
    }
    return true;
}

static bool read_polygon(const struct reading *reading, const json_t *rings, struct err *err)
{
    if (!json_is_array(rings) || json_array_size(rings) == 0)
        return drawing_refuse(reading->drawing->path, reading->place, err,
                              "the polygon has no rings");
    if (!drawing_region(reading->drawing, reading->meaning, reading->place, err))
        return false;
    for (size_t i = 0; i < json_array_size(rings); i++)
        if (!read_ring(reading, json_array_get(rings, i), err))
            return false;
    return true;
}

static bool is_no_area(const char *type)
{
    return !strcmp(type, "Point") || !strcmp(type, "MultiPoint") || !strcmp(type, "LineString") ||
           !strcmp(type, "MultiLineString");
}

static bool read_geometry(const struct reading *reading, const json_t *geometry, int depth,
                          struct err *err)
{
    const json_t *parts = json_object_get(geometry, "coordinates");
    const char *type = text_of(geometry, "type");
    if (!strcmp(type, "Polygon"))
        return read_polygon(reading, parts, err);
    bool collection = !strcmp(type, "GeometryCollection");
    if (collection)
        parts = json_object_get(geometry, "geometries");
    if (collection || !strcmp(type, "MultiPolygon")) {
        if (!json_is_array(parts) || depth == MAX_NESTING)
            return drawing_refuse(reading->drawing->path, reading->place, err,
                                  "the %s has no parts, or is nested too deeply", type);
        for (size_t i = 0; i < json_array_size(parts); i++) {
            const json_t *part = json_array_get(parts, i);
            if (collection ? !read_geometry(reading, part, depth + 1, err)
                           : !read_polygon(reading, part, err))
                return false;
        }
        return true;
    }
    if (is_no_area(type)) {
        drawing_ignore(reading->drawing, type);
        return true;
    }
    return drawing_refuse(reading->drawing->path, reading->place, err,
                          "the geometry type is not a GeoJSON type");
}

static void class_name(const json_t *properties, char out[DRAWING_NAME])
{
    const json_t *classification = json_object_get(properties, "classification");
    const json_t *names = json_object_get(classification, "names");
    const char *whole = json_is_string(classification) ? json_string_value(classification)
                                                       : text_of(classification, "name");
    size_t used = 0;
    snprintf(out, DRAWING_NAME, "%s", whole);
    for (size_t i = 0; i < json_array_size(names) && used < DRAWING_NAME; i++) {
        const char *part = json_string_value(json_array_get(names, i));
        used += (size_t)snprintf(out + used, DRAWING_NAME - used, "%s%s", i > 0 ? ": " : "",
                                 part ? part : "");
    }
}

/* QuPath's type of the object; "" if not given. Before 0.4 the types had other names. */
static const char *object_kind(const json_t *feature)
{
    static const char *const old[][2] = { { "PathAnnotationObject", "annotation" },
                                          { "PathDetectionObject", "detection" },
                                          { "PathCellObject", "cell" },
                                          { "PathTileObject", "tile" },
                                          { "TMACoreObject", "tmaCore" },
                                          { "PathRootObject", "root" } };
    const json_t *properties = json_object_get(feature, "properties");
    const char *kind = text_of(properties, "objectType"), *id = text_of(feature, "id");
    if (!*kind)
        kind = text_of(properties, "object_type");
    for (size_t i = 0; !*kind && i < sizeof old / sizeof *old; i++)
        if (!strcmp(id, old[i][0]))
            kind = old[i][1];
    return kind;
}

static bool read_feature(const json_t *feature, size_t number, struct drawing *drawing,
                         struct err *err)
{
    struct reading reading = { .drawing = drawing, .place = { "feature", (int64_t)number } };
    if (!is_type(feature, "Feature"))
        return drawing_refuse(drawing->path, reading.place, err,
                              "not an object of type \"Feature\"");
    const json_t *geometry = json_object_get(feature, "geometry");
    const char *kind = object_kind(feature), *type = text_of(geometry, "type");
    char name[DRAWING_NAME];
    if (kind[0] && strcmp(kind, "annotation")) {
        drawing_ignore(drawing, kind);
        return true;
    }
    if (!geometry || json_is_null(geometry) || is_no_area(type)) {
        drawing_ignore(drawing, *type ? type : "feature without geometry");
        return true;
    }
    class_name(json_object_get(feature, "properties"), name);
    reading.meaning = drawing_class(drawing, name);
    return !region_counts(reading.meaning) || read_geometry(&reading, geometry, 0, err);
}

static bool read_geojson(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    const json_t *features = file->json;
    if (is_type(features, "Feature"))
        return read_feature(features, 1, drawing, err);
    if (json_is_object(features))
        features = json_object_get(features, "features");
    if (!json_is_array(features))
        return err_set(err, ERR_FORMAT, "%s: the FeatureCollection has no list of features",
                       file->path);
    for (size_t i = 0; i < json_array_size(features); i++)
        if (!read_feature(json_array_get(features, i), i + 1, drawing, err))
            return false;
    return true;
}

const struct format format_geojson = { "GeoJSON", claims, read_geojson };
