/* exporters.c: the table of exporters, see export.h, and their defaults. */
#include <stddef.h>
#include "heatmap/export.h"

extern const struct exporter exporter_ome_tiff, exporter_tiles_csv, exporter_tiles_geojson,
    exporter_regions, exporter_overlay;

/* clang-format off */
const struct exporter *const exporters[] = {
    &exporter_ome_tiff,
    &exporter_tiles_csv,
    &exporter_tiles_geojson,
    &exporter_regions,
    &exporter_overlay,
    NULL,
};
/* clang-format on */

struct export_options export_defaults(void)
{
    return (struct export_options){ .threshold = 0.5, .memory_bytes = INT64_C(128) << 20 };
}
