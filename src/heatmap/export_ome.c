/* export_ome.c: a heatmap -> heatmap.ome.tif: a plane of float32 for every class, each a tiled
 * pyramid. Pixel (0, 0) begins at the slide's top-left corner and has the physical size of a cell,
 * so that the image lies over the slide. The values are the scores, NaN where there is no tissue;
 * colours are the viewer's. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/version.h"
#include "heatmap/export_common.h"
#include "heatmap/float_pyramid.h"
#include "plot/sketch.h"

#define TILE_PX 256

static void write_attribute(FILE *stream, const char *name, const char *text)
{
    fprintf(stream, " %s=\"", name);
    while (*text) {
        uint32_t code = sketch_next_code(&text);
        if (code == '&' || code == '<' || code == '"' || code >= 0x7f)
            fprintf(stream, "&#%u;", code); /* a TIFF's description is ASCII */
        else
            fputc(code < 0x20 ? ' ' : (int)code, stream); /* XML knows no such letters */
    }
    fputc('"', stream);
}

static void write_pixels(FILE *stream, const struct heatmap_info *info)
{
    fprintf(stream,
            "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"float\" BigEndian=\"false\" "
            "SizeX=\"%lld\" SizeY=\"%lld\" SizeC=\"%lld\" SizeZ=\"1\" SizeT=\"1\"",
            (long long)info->width, (long long)info->height, (long long)info->n_classes);
    if (info->mpp > 0) { /* in um, the unit that OME-XML means when none is given */
        double cell_um = info->mpp * (double)info->stride;
        fprintf(stream, " PhysicalSizeX=\"%.12g\" PhysicalSizeY=\"%.12g\"", cell_um, cell_um);
    }
    fputc('>', stream);
    for (int64_t c = 0; c < info->n_classes; c++) {
        fprintf(stream, "<Channel ID=\"Channel:0:%lld\" SamplesPerPixel=\"1\"", (long long)c);
        write_attribute(stream, "Name", info->class_names[c]);
        fputs("/>", stream);
    }
    for (int64_t c = 0; c < info->n_classes; c++)
        fprintf(stream, "<TiffData FirstC=\"%lld\" IFD=\"%lld\" PlaneCount=\"1\"/>", (long long)c,
                (long long)c);
    fputs("</Pixels>", stream);
}

/* The OME-XML that describes the file, the caller's. */
static bool make_xml(const struct heatmap_info *info, char **out, struct err *err)
{
    size_t size;
    FILE *stream = open_memstream(out, &size);
    if (!stream)
        return err_memory(err, info->slide);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
          "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
          "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
          "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
          "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\"",
          stream);
    write_attribute(stream, "Creator", "microtome " MICROTOME_VERSION);
    fputs("><Image ID=\"Image:0\"", stream);
    write_attribute(stream, "Name", info->slide);
    fputc('>', stream);
    write_pixels(stream, info);
    fputs("</Image></OME>", stream);
    if (fclose(stream) == 0)
        return true;
    free(*out);
    *out = NULL;
    return err_memory(err, info->slide);
}

struct plane_rows {
    struct blocks blocks;
    float *row; /* [width, classes] */
    int64_t class_index;
    const struct ctx *ctx;
};

static bool read_row(void *arg, int64_t row, float *out, struct err *err)
{
    struct plane_rows *rows = arg;
    int64_t classes = rows->blocks.n_classes;
    if (ctx_stopped(rows->ctx))
        return err_stopped(err);
    if (!blocks_read(&rows->blocks, row, rows->row, err))
        return false;
    for (int64_t x = 0; x < rows->blocks.across; x++)
        out[x] = rows->row[x * classes + rows->class_index];
    return true;
}

static bool write_planes(const struct export_request *request, struct tiff_out *tiff,
                         const struct ctx *ctx, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(request->heatmap);
    struct plane_rows rows = { .ctx = ctx };
    struct float_pyramid plane = { .width = info->width,
                                   .height = info->height,
                                   .tile_px = TILE_PX,
                                   .px_um = info->mpp * (double)info->stride };
    char *xml = NULL;
    int64_t memory = request->options->memory_bytes / 4;
    while (plane.tile_px > 16 && float_pyramid_bytes(plane.width, plane.tile_px) > 3 * memory)
        plane.tile_px /= 2;
    bool ok =
        make_xml(info, &xml, err) && blocks_open(&rows.blocks, request->heatmap, 1, memory, err);
    if (ok) {
        rows.row = malloc((size_t)(info->width * info->n_classes) * sizeof *rows.row);
        ok = rows.row || err_memory(err, "a row of a heatmap");
    }
    for (; ok && rows.class_index < info->n_classes; rows.class_index++) {
        plane.description = rows.class_index == 0 ? xml : NULL;
        ok = float_pyramid_write(tiff, &plane, read_row, &rows, ctx, err);
    }
    blocks_close(&rows.blocks);
    free(rows.row);
    free(xml);
    return ok;
}

static bool write_ome(const struct export_request *request, const char *path, const struct ctx *ctx,
                      struct err *err)
{
    struct file_out out;
    struct tiff_out tiff;
    if (!file_out_reserve(&out, path, err))
        return false;
    bool ok = tiff_out_open(&tiff, path, out.handle, "w8l", err) &&
              write_planes(request, &tiff, ctx, err);
    tiff_out_close(&tiff);
    if (ok)
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

const struct exporter exporter_ome_tiff = {
    .name = "ome-tiff",
    .file = "heatmap.ome.tif",
    .help = "the scores as a pyramidal float32 OME-TIFF, for QuPath",
    .write = write_ome,
};
