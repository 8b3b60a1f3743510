/* geojson.c: GeoJSON as QuPath writes it -> regions.
 * A FeatureCollection, a Feature, a bare list of features or a bare geometry; Polygon and
 * MultiPolygon with holes. The class is properties.classification.name, or the parts of .names
 * ("Tumor: Positive"), or properties.classification itself. Features within a feature
 * (childObjects, if QuPath exports a hierarchy) are read too. QuPath objects other than annotations
 * (detections, cells, tiles), points, lines, and regions of another focal plane or time are not
 * areas of the slide. */
#include "annotation/format.h"

#include <stdio.h>
#include <string.h>
#include "annotation/json_text.h"

#define MAX_NESTING 16 /* of geometry collections, and of objects in objects */

struct reading {
    struct drawing *drawing;
    struct file_place place;
    int meaning;
};

static bool is_type(const json_t *object, const char *type)
{
    return !strcmp(json_text_of(object, "type"), type);
}

static bool is_geometry(const json_t *json)
{
    return is_type(json, "Polygon") || is_type(json, "MultiPolygon") ||
           is_type(json, "GeometryCollection");
}

static bool claims(const struct parsed_file *file)
{
    const json_t *json = file->json;
    if (json_is_array(json))
        return json_array_size(json) == 0 || is_type(json_array_get(json, 0), "Feature");
    return json &&
           (is_type(json, "FeatureCollection") || is_type(json, "Feature") || is_geometry(json));
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
    const char *type = json_text_of(geometry, "type");
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
                                                       : json_text_of(classification, "name");
    size_t used = 0;
    snprintf(out, DRAWING_NAME, "%s", whole);
    for (size_t i = 0; i < json_array_size(names) && used < DRAWING_NAME; i++) {
        const char *part = json_string_value(json_array_get(names, i));
        used += (size_t)snprintf(out + used, DRAWING_NAME - used, "%s%s", i > 0 ? ": " : "",
                                 part ? part : "");
    }
}

/* QuPath's type of the object; "annotation" if it has none that QuPath knows. The key, and the
 * names before 0.3, have changed. */
static const char *object_kind(const json_t *feature)
{
    static const char *const kinds[][2] = {
        { "detection", "detection" }, { "PathDetectionObject", "detection" },
        { "cell", "cell" },           { "PathCellObject", "cell" },
        { "tile", "tile" },           { "PathTileObject", "tile" },
        { "tmaCore", "tmaCore" },     { "TMACoreObject", "tmaCore" },
        { "tma_core", "tmaCore" },    { "root", "root" },
        { "PathRootObject", "root" },
    };
    static const char *const keys[] = { "objectType", "object_type", "type" };
    const json_t *properties = json_object_get(feature, "properties");
    const char *kind = "";
    for (size_t i = 0; !*kind && i < sizeof keys / sizeof *keys; i++)
        kind = json_text_of(properties, keys[i]);
    if (!*kind)
        kind = json_text_of(feature, "id");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i][0]))
            return kinds[i][1];
    return "annotation";
}

/* Slides are read as one plane, the first: z is the focal plane and t the time. */
static bool other_plane(const json_t *geometry, char out[DRAWING_NAME])
{
    const json_t *plane = json_object_get(geometry, "plane");
    double z = json_number_value(json_object_get(plane, "z"));
    double t = json_number_value(json_object_get(plane, "t"));
    snprintf(out, DRAWING_NAME, "region in plane z=%g, t=%g", z, t);
    return z != 0 || t != 0;
}

/* Why the feature is not an area of the slide; "" if it is one. */
static void why_ignored(const json_t *feature, char out[DRAWING_NAME])
{
    const json_t *geometry = json_object_get(feature, "geometry");
    const char *kind = object_kind(feature), *type = json_text_of(geometry, "type");
    if (strcmp(kind, "annotation"))
        snprintf(out, DRAWING_NAME, "%s", kind);
    else if (!geometry || json_is_null(geometry))
        snprintf(out, DRAWING_NAME, "feature without geometry");
    else if (is_no_area(type))
        snprintf(out, DRAWING_NAME, "%s", type);
    else if (!other_plane(geometry, out))
        out[0] = 0;
}

static bool read_features(const json_t *features, const struct file_place *parent, int depth,
                          struct drawing *drawing, struct err *err);

static bool read_feature(const json_t *feature, struct file_place place, int depth,
                         struct drawing *drawing, struct err *err)
{
    struct reading reading = { .drawing = drawing, .place = place };
    if (!is_type(feature, "Feature"))
        return drawing_refuse(drawing->path, place, err, "not an object of type \"Feature\"");
    const json_t *properties = json_object_get(feature, "properties");
    const json_t *children = json_object_get(properties, "childObjects");
    if (!children)
        children = json_object_get(feature, "childObjects");
    char name[DRAWING_NAME];
    why_ignored(feature, name);
    if (*name && strcmp(name, "root") != 0)
        drawing_ignore(drawing, name);
    if (!*name) {
        class_name(properties, name);
        reading.meaning = drawing_class(drawing, name);
        if (region_counts(reading.meaning) &&
            !read_geometry(&reading, json_object_get(feature, "geometry"), 0, err))
            return false;
    }
    return !children || read_features(children, &place, depth + 1, drawing, err);
}

/* A child has the place of the feature that it is in. */
static bool read_features(const json_t *features, const struct file_place *parent, int depth,
                          struct drawing *drawing, struct err *err)
{
    if (parent && (!json_is_array(features) || depth > MAX_NESTING))
        return drawing_refuse(drawing->path, *parent, err,
                              "childObjects is not a list of features, or nested too deeply");
    for (size_t i = 0; i < json_array_size(features); i++) {
        struct file_place place = { "feature", (int64_t)i + 1 };
        if (!read_feature(json_array_get(features, i), parent ? *parent : place, depth, drawing,
                          err))
            return false;
    }
    return true;
}

static bool read_geojson(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    const json_t *features = file->json;
    struct file_place first = { "feature", 1 };
    if (is_geometry(features)) {
        struct reading reading = { .drawing = drawing, .place = first };
        reading.meaning = drawing_class(drawing, "");
        return !region_counts(reading.meaning) || read_geometry(&reading, features, 0, err);
    }
    if (is_type(features, "Feature"))
        return read_feature(features, first, 0, drawing, err);
    if (json_is_object(features))
        features = json_object_get(features, "features");
    if (!json_is_array(features))
        return err_set(err, ERR_FORMAT, "%s: the FeatureCollection has no list of features",
                       file->path);
    return read_features(features, NULL, 0, drawing, err);
}

const struct format format_geojson = { "GeoJSON", claims, read_geojson };
