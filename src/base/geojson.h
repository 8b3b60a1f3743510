/* geojson.h: polygons for QuPath (0.6 and later) as a stream of GeoJSON features: a collection, in
 * it features, in each a polygon of rings, then its properties. One line per feature. Level-0
 * pixels. */
#ifndef BASE_GEOJSON_H
#define BASE_GEOJSON_H
#include <stdint.h>
#include "base/json.h"

void geojson_begin(struct json_out *json, FILE *stream);
void geojson_end(struct json_out *json);

/* Opens a feature and the coordinates of its polygon. The identifier is derived from the name and
 * the number, so the same data give the same file. */
void geojson_feature(struct json_out *json, uint64_t name, uint64_t number);
/* The same for several polygons as one object: each is opened and closed before its rings and after
 * them. */
void geojson_feature_of_many(struct json_out *json, uint64_t name, uint64_t number);
void geojson_polygon(struct json_out *json);
void geojson_close_polygon(struct json_out *json);
/* A ring: then its points, the first one again at the end. Rounded to a hundredth of a pixel. */
void geojson_ring(struct json_out *json);
void geojson_point(struct json_out *json, double x_l0, double y_l0);
void geojson_close_ring(struct json_out *json);
/* Closes the polygon and opens the properties. type: "annotation", "tile", "detection". */
void geojson_properties(struct json_out *json, const char *type);
void geojson_classification(struct json_out *json, const char *name, const uint8_t colour[3]);
/* Measurements: opened, then each, then closed. The form that all versions of QuPath read. Those
 * that are not finite are left out. */
void geojson_measurements(struct json_out *json);
void geojson_measurement(struct json_out *json, const char *name, double value);
void geojson_close_measurements(struct json_out *json);
void geojson_close_feature(struct json_out *json);
#endif
