/* geojson.c: see geojson.h. */
#include "base/geojson.h"

#include <math.h>
#include "base/rng.h"

void geojson_begin(struct json_out *json, FILE *stream)
{
    json_out_begin(json, stream);
    json_out_object(json, NULL);
    json_out_text(json, "type", "FeatureCollection");
    json_out_array(json, "features");
}

void geojson_end(struct json_out *json)
{
    json_out_close_array(json);
    json_out_close_object(json);
    json_out_end(json);
}

/* Looks like a random UUID (version 4). */
static void write_id(struct json_out *json, uint64_t name, uint64_t number)
{
    struct rng rng = rng_new(name, 0, number);
    uint32_t a = rng_u32(&rng), b = rng_u32(&rng), c = rng_u32(&rng), d = rng_u32(&rng);
    char text[37];
    snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%04x%08x", a, b >> 16, b & 0xfff,
             0x8000 | (c >> 18), c & 0xffff, d);
    json_out_text(json, "id", text);
}

static void open_feature(struct json_out *json, const char *geometry, uint64_t name,
                         uint64_t number)
{
    json_out_object_line(json, NULL);
    json_out_text(json, "type", "Feature");
    write_id(json, name, number);
    json_out_object(json, "geometry");
    json_out_text(json, "type", geometry);
    json_out_array_line(json, "coordinates");
}

void geojson_feature(struct json_out *json, uint64_t name, uint64_t number)
{
    open_feature(json, "Polygon", name, number);
}

void geojson_feature_of_many(struct json_out *json, uint64_t name, uint64_t number)
{
    open_feature(json, "MultiPolygon", name, number);
}

void geojson_polygon(struct json_out *json)
{
    json_out_array_line(json, NULL);
}

void geojson_close_polygon(struct json_out *json)
{
    json_out_close_array(json);
}

void geojson_ring(struct json_out *json)
{
    json_out_array_line(json, NULL);
}

void geojson_point(struct json_out *json, double x_l0, double y_l0)
{
    json_out_array_line(json, NULL);
    json_out_real(json, NULL, round(x_l0 * 100) / 100);
    json_out_real(json, NULL, round(y_l0 * 100) / 100);
    json_out_close_array(json);
}

void geojson_close_ring(struct json_out *json)
{
    json_out_close_array(json);
}

void geojson_properties(struct json_out *json, const char *type)
{
    json_out_close_array(json);
    json_out_close_object(json);
    json_out_object(json, "properties");
    json_out_text(json, "objectType", type);
    json_out_bool(json, "isLocked", false);
}

void geojson_classification(struct json_out *json, const char *name, const uint8_t colour[3])
{
    json_out_object_line(json, "classification");
    json_out_text(json, "name", name);
    json_out_array_line(json, "color");
    for (int c = 0; c < 3; c++)
        json_out_int(json, NULL, colour[c]);
    json_out_close_array(json);
    json_out_close_object(json);
}

void geojson_measurements(struct json_out *json)
{
    json_out_array_line(json, "measurements");
}

void geojson_measurement(struct json_out *json, const char *name, double value)
{
    if (!isfinite(value))
        return;
    json_out_object_line(json, NULL);
    json_out_text(json, "name", name);
    json_out_real(json, "value", value);
    json_out_close_object(json);
}

void geojson_close_measurements(struct json_out *json)
{
    json_out_close_array(json);
}

void geojson_close_feature(struct json_out *json)
{
    json_out_close_object(json);
    json_out_close_object(json);
}
