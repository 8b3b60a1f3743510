/* export_tiles_csv.c: a heatmap -> tiles.csv with the columns of WSInfer: minx,miny,width,height in
 * level-0 px and prob_<class> for every class, or the name of a number. Only tiles with a score. */
#include "base/csv.h"
#include "base/file.h"
#include "heatmap/export_common.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>

struct table {
    FILE *stream;
    int64_t n_classes;
};

static void write_tile(void *arg, const struct export_tile *tile)
{
    const struct table *table = arg;
    fprintf(table->stream, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, tile->place.x_l0,
            tile->place.y_l0, tile->place.width_l0, tile->place.height_l0);
    for (int64_t c = 0; c < table->n_classes; c++)
        fprintf(table->stream, ",%.9g", export_short(tile->scores[c]));
    fputc('\n', table->stream);
}

static bool write_header(FILE *stream, const struct heatmap_info *info, struct err *err)
{
    fputs("minx,miny,width,height", stream);
    for (int64_t c = 0; c < info->n_classes; c++) {
        char *name = heatmap_column(info, c);
        if (!name)
            return err_memory(err, "the name of a class");
        fputc(',', stream);
        csv_write_cell(stream, name);
        free(name);
    }
    fputc('\n', stream);
    return true;
}

static bool write_csv(const struct export_request *request, const char *path, const struct ctx *ctx,
                      struct err *err)
{
    const struct heatmap_info *info = heatmap_info(request->heatmap);
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    struct table table = { out.stream, info->n_classes };
    if (write_header(out.stream, info, err) && export_tiles(request, ctx, write_tile, &table, err))
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

const struct exporter exporter_tiles_csv = {
    .name = "tiles-csv",
    .file = "tiles.csv",
    .help = "scores of tiles as a table with the columns of WSInfer",
    .write = write_csv,
};
