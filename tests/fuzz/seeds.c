/* seeds.c: small files of the formats that are not text, as they are written now: fuzz_seeds FOLDER
 * writes FOLDER/<target>/<file>. Texts lie in tests/fuzz/seeds. */
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "base/file.h"
#include "base/image.h"
#include "base/label_image.h"
#include "base/pool.h"
#include "heatmap/part_file.h"
#include "patch/h5.h"
#include "patch/store.h"
#include "slide/tiff_pyramid.h"
#include "tests/fuzz/small_trainer.h"
#include "tests/fuzz/tile_seeds.h"
#include "train/checkpoint.h"
#include "train/trainer_state.h"
#include "base/text.h"

static const char *root;

static void check(bool ok, const struct err *err)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_seeds: %s\n", err->text);
    exit(1);
}

/* root/target/name, the caller's. */
static char *seed_path(const char *target, const char *name)
{
    struct err err = { .text = "out of memory" };
    char *folder = text_format("%s/%s", root, target);
    check(folder != NULL, &err);
    check(file_make_folder(folder, &err), &err);
    char *path = text_format("%s/%s", folder, name);
    check(path != NULL, &err);
    free(folder);
    return path;
}

static void write_seed(const char *target, const char *name, const void *bytes, size_t size)
{
    struct err err = { 0 };
    struct file_out out;
    char *path = seed_path(target, name);
    check(file_out_open(&out, path, &err), &err);
    fwrite(bytes, 1, size, out.stream);
    check(file_out_commit(&out, &err), &err);
    free(path);
}

/* A text, a 0 byte and numbers. */
static void write_pieces(const char *target, const char *name, const char *text, const void *bytes,
                         size_t size)
{
    size_t length = strlen(text) + 1;
    char *all = malloc(length + size);
    if (!all)
        exit(1);
    memcpy(all, text, length);
    memcpy(all + length, bytes, size);
    write_seed(target, name, all, length + size);
    free(all);
}

/* --- stores --- */

static void write_store(enum store_layout layout, const struct patch_list *list)
{
    struct err err = { 0 };
    char name[32];
    snprintf(name, sizeof name, "%s.h5", store_layout_names[layout]);
    char *path = seed_path("fuzz_store", name);
    struct store_facts facts = { .program = "microtome",
                                 .slide = "s",
                                 .file = "s.svs",
                                 .vendor = "aperio",
                                 .patient = "p",
                                 .node = "",
                                 .center = "",
                                 .split = "",
                                 .slide_label = "",
                                 .mode = "dense",
                                 .options = "",
                                 .tissue_method = "fda",
                                 .label_rule = "",
                                 .stain_method = "",
                                 .patch = 16,
                                 .tile = 16,
                                 .stride = 8,
                                 .mpp = 0.5 };
    struct store_request request = {
        .layout = layout, .facts = &facts, .patches = list, .group = 3, .batch_bytes = 1 << 20
    };
    struct store_writer *writer = NULL;
    check(store_create(path, &request, &writer, &err), &err);
    const struct units *units = store_units(writer);
    for (int64_t i = 0; i < units->n; i++)
        memset(store_place(writer, i), (int)(7 * i), (size_t)(units->size * units->size * 3));
    check(store_commit(writer, &err), &err);
    free(path);
}

/* As h5py's compression="gzip" with shuffle. */
static void put_gzip(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims)
{
    static const char zeros[4096];
    hid_t space = H5Screate_simple(rank, dims, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(create, rank, dims);
    H5Pset_shuffle(create);
    H5Pset_deflate(create, 4);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (set < 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) < 0)
        exit(1);
    H5Dclose(set);
    H5Pclose(create);
    H5Sclose(space);
}

static void write_stores(void)
{
    struct patch_list list = { 0 };
    for (int i = 0; i < 6; i++) {
        struct patch patch = { .x = 8 * (i % 3), .y = 8 * (i / 3), .label = (int8_t)(i % 2) };
        patch.x_l0 = patch.x, patch.y_l0 = patch.y, patch.column = i % 3, patch.row = i / 3;
        if (!patch_list_add(&list, &patch, NULL))
            exit(1);
    }
    for (int layout = STORE_BLOCKS; layout <= STORE_PROCESS; layout++)
        write_store((enum store_layout)layout, &list);
    patch_list_free(&list);
    char *path = seed_path("fuzz_store", "gzip.h5");
    hid_t file = h5_create(path);
    put_gzip(file, "imgs", H5T_STD_U8LE, 4, (hsize_t[]){ 4, 16, 16, 3 });
    put_gzip(file, "coords", H5T_STD_I64LE, 2, (hsize_t[]){ 4, 2 });
    if (H5Fclose(file) < 0)
        exit(1);
    free(path);
}

/* Descriptions of stores, as fuzz_store understands them: whose, how many datasets; for each: name,
 * type, dimensions, layout (chunks, filters), whether it is written, and the data. */
static void write_descriptions(void)
{
    static const uint8_t clam[] = { 0, 2, 0, 0, 4, 5, 8, 8, 3, 0, 1, 1, 1, 2, 5, 2, 0, 1 };
    static const uint8_t gzip[] = { 0, 2, 0, 0, 4, 5, 8, 8, 3, 2, 5, 8, 8,
                                    3, 3, 1, 1, 1, 2, 5, 2, 2, 5, 2, 3, 1 };
    static const uint8_t blocks[] = { 0x47, 3, 5, 0, 4, 2, 8, 8, 3, 0, 1, 1, 1,
                                      2,    5, 2, 0, 1, 6, 2, 2, 5, 1, 0, 1 };
    static const uint8_t fda[] = { 0, 2, 7, 0, 4, 5, 8, 8, 3, 0, 1, 8, 1, 2, 5, 5, 0, 1 };
    static const uint8_t claims[] = { 0, 2, 0, 0, 4, 155, 8,   8, 3, 2,   144, 8,
                                      8, 3, 2, 1, 1, 2,   155, 2, 2, 144, 2,   2 };
    write_seed("fuzz_store", "clam", clam, sizeof clam);
    write_seed("fuzz_store", "gzip", gzip, sizeof gzip);
    write_seed("fuzz_store", "blocks", blocks, sizeof blocks);
    write_seed("fuzz_store", "fda", fda, sizeof fda);
    write_seed("fuzz_store", "claims", claims, sizeof claims);
}

/* --- pixels --- */

static bool draw(void *arg, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t *px,
                 int64_t stride_bytes, int worker, struct err *err)
{
    (void)arg, (void)worker, (void)err;
    for (int64_t j = 0; j < height; j++)
        for (int64_t i = 0; i < 3 * width; i++)
            px[j * stride_bytes + i] =
                (uint8_t)(128 + 100 * sin(0.1 * (double)(x + i + 3 * (y + j))));
    return true;
}

/* Two levels without loss, the smaller one of less than a tile. */
struct lossless {
    const char *name, *mode, *description, *software;
    uint16_t compression, bits, planar, predictor;
    bool sub; /* level 1 is a SubIFD */
};

static void write_lossless_level(TIFF *tiff, const struct lossless *kind, uint32_t width)
{
    enum { TILE = 64 };
    static uint8_t px[TILE * TILE * 6];
    bool first = width == 160;
    TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, first ? 0 : FILETYPE_REDUCEDIMAGE);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, width / 2);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, TILE);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind->bits);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind->planar);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind->compression);
    if (kind->predictor)
        TIFFSetField(tiff, TIFFTAG_PREDICTOR, kind->predictor);
    if (first && kind->description)
        TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, kind->description);
    if (first && kind->software)
        TIFFSetField(tiff, TIFFTAG_SOFTWARE, kind->software);
    if (first && kind->sub)
        TIFFSetField(tiff, TIFFTAG_SUBIFD, 1, (uint64_t[]){ 0 });
    for (uint32_t i = 0; i < TIFFNumberOfTiles(tiff); i++) {
        draw(NULL, 0, 0, TILE, TILE, px, 3 * TILE, 0, NULL);
        draw(NULL, 0, 0, TILE, TILE, px + TILE * TILE * 3, 3 * TILE, 0, NULL);
        if (TIFFWriteEncodedTile(tiff, i, px, TIFFTileSize(tiff)) < 0)
            exit(1);
    }
    if (!TIFFWriteDirectory(tiff))
        exit(1);
}

static void write_lossless(const struct lossless *kind)
{
    char *path = seed_path("fuzz_slide", kind->name);
    TIFF *tiff = TIFFOpen(path, kind->mode);
    if (!tiff)
        exit(1);
    write_lossless_level(tiff, kind, 160);
    write_lossless_level(tiff, kind, 80);
    TIFFClose(tiff);
    free(path);
}

static void write_lossless_slides(void)
{
    static const struct lossless kinds[] = {
        { "lzw.tiff", "w", NULL, NULL, COMPRESSION_LZW, 8, 1, 0, false },
        { "deflate.tiff", "w", NULL, NULL, COMPRESSION_ADOBE_DEFLATE, 8, 1, 0, false },
        { "planar.tiff", "wb", NULL, NULL, COMPRESSION_ADOBE_DEFLATE, 16, 2, 2, false },
        { "ome.tiff", "w8",
          "<OME UUID='urn:uuid:1'><Instrument><Objective ID='o' NominalMagnification='20'/>"
          "</Instrument><Image><ObjectiveSettings ID='o'/><Pixels SizeX='160' SizeY='80' SizeZ='1' "
          "SizeC='3' SizeT='1' PhysicalSizeX='250' PhysicalSizeXUnit='nm' PhysicalSizeY='0.25'>"
          "<TiffData IFD='0'><UUID "
          "FileName='a'>urn:uuid:1</UUID></TiffData></Pixels></Image></OME>",
          NULL, COMPRESSION_ADOBE_DEFLATE, 8, 1, 2, true },
        { "philips.tiff", "w",
          "<DataObject ObjectType='DPUfsImport'><Attribute Name='PIM_DP_SCANNED_IMAGES'><Array>"
          "<DataObject><Attribute Name='DICOM_PIXEL_SPACING'>\"0.00025\" \"0.00025\"</Attribute>"
          "<Attribute Name='PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE'><Array>"
          "<DataObject ObjectType='PixelDataRepresentation'>"
          "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.00025\" \"0.00025\"</Attribute></DataObject>"
          "<DataObject ObjectType='PixelDataRepresentation'>"
          "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.0005\" \"0.0005\"</Attribute></DataObject>"
          "</Array></Attribute><Attribute Name='PIM_DP_IMAGE_TYPE'>WSI</Attribute></DataObject>"
          "</Array></Attribute></DataObject>",
          "Philips DP", COMPRESSION_LZW, 8, 1, 0, false },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        write_lossless(&kinds[i]);
}

static void write_slides(void)
{
    static const struct {
        const char *name;
        struct tiff_pyramid_options options;
    } slides[] = {
        { "generic.tiff", { .mpp = 0.5 } },
        { "rgb.tiff", { .rgb = true, .full_jpeg = true, .classic = true } },
        { "whole.tiff", { .full_jpeg = true, .chroma_x = 1, .chroma_y = 1, .big_endian = true } },
        { "aperio.svs", { .description = "Aperio Image |AppMag = 20|MPP = 0.5", .classic = true } },
    };
    struct err err = { 0 };
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    for (size_t i = 0; i < sizeof slides / sizeof *slides; i++) {
        struct tiff_pyramid_options options = slides[i].options;
        char *path = seed_path("fuzz_slide", slides[i].name);
        options.width = 520, options.height = 40, options.tile_px = 64, options.quality = 20;
        check(tiff_pyramid_write(path, &options, draw, NULL, &ctx, &err), &err);
        free(path);
    }
    pool_free(pool);
    write_lossless_slides();
}

static void write_images(void)
{
    struct err err = { 0 };
    struct image image, grey;
    struct image_colour colours[256] = { { 0 } };
    check(image_new(&image, 20, 12, 3, &err) && image_new(&grey, 20, 12, 1, &err), &err);
    draw(NULL, 0, 0, 20, 12, image.px, 60, 0, NULL);
    char *names[] = { seed_path("fuzz_image", "rgb.png"), seed_path("fuzz_image", "grey.png"),
                      seed_path("fuzz_image", "palette.png"), seed_path("fuzz_image", "a.jpg") };
    check(image_write_png_noted(names[0], &image, "how it was made", &err) &&
              image_write_png(names[1], &grey, &err) &&
              image_write_png_palette(names[2], &grey, colours, &err) &&
              image_write_jpeg(names[3], &image, 80, &err),
          &err);
    for (int i = 0; i < 4; i++)
        free(names[i]);
    image_free(&image);
    image_free(&grey);
}

static void write_striped(const char *name, uint16_t compression, uint16_t planar, uint16_t bits)
{
    static uint8_t px[12 * 20 * 3 * 2];
    char *path = seed_path("fuzz_image_slide", name);
    TIFF *tiff = TIFFOpen(path, "w");
    if (!tiff)
        exit(1);
    draw(NULL, 0, 0, 20, 12, px, 60, 0, NULL);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 20);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 12);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 6);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, planar);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
                 compression == COMPRESSION_JPEG ? PHOTOMETRIC_YCBCR : PHOTOMETRIC_RGB);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    if (compression == COMPRESSION_JPEG)
        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB),
            TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 16);
    for (uint32_t i = 0; i < TIFFNumberOfStrips(tiff); i++)
        if (TIFFWriteEncodedStrip(
                tiff, i, px, TIFFVStripSize(tiff, compression == COMPRESSION_JPEG ? 12 : 6)) < 0)
            exit(1);
    TIFFClose(tiff);
    free(path);
}

/* What image_write_png does not write: 16 bits, alpha, interlaced. */
static void write_odd_png(const char *name, int bits, int colours, int interlaced)
{
    uint8_t row[20 * 4 * 2];
    char *path = seed_path("fuzz_image_slide", name);
    FILE *stream = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!stream || !info)
        exit(1);
    png_init_io(png, stream);
    png_set_IHDR(png, info, 20, 12, bits, colours, interlaced, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_pHYs(png, info, 4000000, 4000000, PNG_RESOLUTION_METER);
    png_write_info(png, info);
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (int y = 0; y < 12; y++) {
            memset(row, 20 * y, sizeof row);
            png_write_row(png, row);
        }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    fclose(stream);
    free(path);
}

/* As numpy.save writes it. */
static void write_npy(const char *name, const char *type, const void *data, size_t size)
{
    char bytes[256] = "\x93NUMPY\x01", *header = bytes + 10;
    memset(header, ' ', 118);
    int length =
        snprintf(header, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }", type);
    header[length] = ' ';
    header[117] = '\n';
    bytes[8] = 118;
    memcpy(header + 118, data, size);
    write_seed("fuzz_label_image", name, bytes, 128 + size);
}

static void write_label_images(void)
{
    struct err err = { 0 };
    int32_t px[6] = { 0, 1, 2, 65535, 7, 0 };
    uint8_t small[6] = { 0, 1, 2, 255, 7, 0 };
    int64_t large[6] = { 0, 1, 2, INT32_MAX, 7, 0 };
    char *path = seed_path("fuzz_label_image", "wide.png");
    check(label_image_write_png(path, &(struct label_image){ px, 3, 2 }, &err), &err);
    free(path);
    write_npy("bytes.npy", "|u1", small, sizeof small);
    write_npy("ints.npy", "<i4", px, sizeof px);
    write_npy("longs.npy", "<i8", large, sizeof large);
}

static void write_image_slides(void)
{
    struct err err = { 0 };
    struct image image;
    char *path = seed_path("fuzz_image_slide", "a.jpg");
    check(image_new(&image, 20, 12, 3, &err), &err);
    draw(NULL, 0, 0, 20, 12, image.px, 60, 0, NULL);
    check(image_write_jpeg(path, &image, 80, &err), &err);
    write_odd_png("grey.png", 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE);
    write_odd_png("wide.png", 16, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
    write_odd_png("interlaced.png", 8, PNG_COLOR_TYPE_RGB_ALPHA, PNG_INTERLACE_ADAM7);
    write_striped("lzw.tif", COMPRESSION_LZW, PLANARCONFIG_CONTIG, 8);
    write_striped("planes.tif", COMPRESSION_ADOBE_DEFLATE, PLANARCONFIG_SEPARATE, 8);
    write_striped("wide.tif", COMPRESSION_NONE, PLANARCONFIG_CONTIG, 16);
    write_striped("jpeg.tif", COMPRESSION_JPEG, PLANARCONFIG_CONTIG, 8);
    image_free(&image);
    free(path);
}

/* --- tar --- */

enum { BLOCK = 512, ENTRIES = 4 };

/* A header and a block of data. */
static void put_entry(char *at, const char *name, char type, const char *data)
{
    unsigned sum = 0;
    snprintf(at, 100, "%s", name);
    snprintf(at + 100, 8, "0000644");
    snprintf(at + 124, 12, "%011o", (unsigned)strlen(data) & 07777);
    at[156] = type;
    memcpy(at + 257, "ustar", 6);
    memset(at + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)at[i];
    snprintf(at + 148, 8, "%06o", sum);
    snprintf(at + BLOCK, BLOCK, "%s", data);
}

static void write_tar(void)
{
    static char tar[(2 * ENTRIES + 2) * BLOCK];
    put_entry(tar, "a_class0.png", '0', "no image");
    put_entry(tar + 2 * BLOCK, "././@LongLink", 'L', "folder/of/a/long/name_class1.jpg");
    put_entry(tar + 4 * BLOCK, "short", 'x', "20 path=b_class1.png\n");
    put_entry(tar + 6 * BLOCK, "b.png", '0', "");
    write_seed("fuzz_tar", "small.tar", tar, sizeof tar);
}

/* --- states --- */

/* The state with one number replaced: products of it do not fit 64 bits. */
static void write_overflow(const char *name, const char *state, const char *key, const char *value,
                           const void *numbers, size_t size)
{
    const char *at = strstr(state, key);
    if (!at)
        exit(1);
    const char *rest = at + strlen(key);
    char *text = text_format("%.*s%s%s", (int)(rest - state), state, value,
                             rest + strspn(rest, "-0123456789"));
    if (!text)
        exit(1);
    write_pieces("fuzz_checkpoint", name, text, numbers, size);
    free(text);
}

static void write_checkpoint(void)
{
    static const float numbers[] = { 0.25f, 0.75f, 0.5f, 0.5f, 1, 0 };
    struct err err = { 0 };
    struct checkpoint checkpoint;
    char *folder = seed_path("work", "training"),
         *inner = seed_path("work/training", "checkpoints");
    check(file_make_folder(inner, &err), &err);
    struct trainer *trainer = small_trainer(folder);
    float scores[4];
    float labels[2] = { 1, 0 };
    int64_t samples[2] = { 0, 1 };
    memcpy(scores, numbers, sizeof scores);
    struct epoch_row row = { .learning_rate = 0.1 };
    trainer->seen = (struct predictions){ scores, labels, samples, 2, 2, 2, 0.5 };
    trainer->rows = &row, trainer->n_rows = 1, trainer->epoch = 1, trainer->step = 3;
    trainer->judged.best_epoch = 0;
    check(trainer_save(trainer, &err), &err);
    char *path = trainer_step_path(trainer, trainer_steps(trainer));
    check(checkpoint_open(path, &checkpoint, &err), &err);
    write_pieces("fuzz_checkpoint", "state", checkpoint.state, numbers, sizeof numbers);
    write_overflow("step", checkpoint.state, "\"step\": ", "9223372036854775807", numbers,
                   sizeof numbers);
    write_overflow("epoch", checkpoint.state, "\"epoch\": ", "9223372036854775807", numbers,
                   sizeof numbers);
    write_overflow("steps", checkpoint.state, "\"steps\": ", "-9223372036854775807", numbers,
                   sizeof numbers);
    checkpoint_close(&checkpoint);
    char *bytes = NULL;
    size_t size = 0;
    check(file_read(path, 1 << 20, &bytes, &size, &err), &err);
    write_seed("fuzz_checkpoint", "whole.safetensors", bytes, size);
    free(bytes);
    free(path);
    free(folder);
    free(inner);
}

static void write_plan(void)
{
    static char *classes[] = { "normal", "tumor" };
    static float scores[24];
    struct err err = { 0 };
    struct partition_block blocks[] = { { 0, 0, 3, 2, 10, false }, { 1, 2, 2, 3, 12, true } };
    struct partition partition = { .blocks = blocks, .n_blocks = 2 };
    partition.info = (struct heatmap_info){ .slide = "s",
                                            .path = "s.svs",
                                            .width_l0 = 64,
                                            .height_l0 = 80,
                                            .mpp_l0 = 0.5,
                                            .mpp = 0.5,
                                            .downsample = 1,
                                            .stride = 16,
                                            .origin_x = 8,
                                            .origin_y = 8,
                                            .window = 32,
                                            .width = 4,
                                            .height = 5,
                                            .n_classes = 2,
                                            .class_names = classes,
                                            .mode = "dense",
                                            .models = "m",
                                            .model_hash = "0123456789abcdef",
                                            .options = "a=1" };
    char *folder = seed_path("work", "plan"), *path = seed_path("work/plan", "plan.json");
    char *text = NULL;
    check(partition_write(folder, &partition, 100, &err), &err);
    check(file_read(path, 1 << 20, &text, NULL, &err), &err);
    write_pieces("fuzz_plan", "one_group", text, scores, sizeof scores);
    free(text);
    free(partition.groups);
    free(folder);
    free(path);
}

static void put_little(uint8_t *at, uint32_t value, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Sound of each format that is known, with a chunk of another kind before its samples. */
static void write_wavs(void)
{
    static const struct {
        const char *name;
        uint32_t tag, bits, channels, fmt_bytes;
    } kinds[] = {
        { "pcm8", 1, 8, 1, 16 },   { "pcm16", 1, 16, 2, 16 },      { "pcm24", 1, 24, 1, 16 },
        { "float", 3, 32, 2, 16 }, { "extensible", 1, 32, 1, 40 },
    };
    static const uint8_t rest[14] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint8_t file[160] = "RIFF....WAVEfmt ";
        uint32_t block = kinds[k].channels * kinds[k].bits / 8, fmt = kinds[k].fmt_bytes;
        bool extensible = fmt > 16;
        uint8_t *at = file + 20 + fmt;
        put_little(file + 16, fmt, 4);
        put_little(file + 20, extensible ? 0xfffe : kinds[k].tag, 2);
        put_little(file + 22, kinds[k].channels, 2);
        put_little(file + 24, 8000, 4);
        put_little(file + 28, 8000 * block, 4);
        put_little(file + 32, block, 2);
        put_little(file + 34, kinds[k].bits, 2);
        if (extensible) {
            put_little(file + 44, kinds[k].tag, 2);
            memcpy(file + 46, rest, sizeof rest);
        }
        memcpy(at, "LIST\3\0\0\0abc\0data", 16);
        put_little(at + 16, 4 * block, 4);
        put_little(at + 20, 0x3e99999a, 4);
        size_t size = (size_t)(at + 20 - file) + 4 * block;
        put_little(file + 4, (uint32_t)size - 8, 4);
        write_seed("fuzz_wav", kinds[k].name, file, size);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    root = argv[1];
    write_stores();
    write_descriptions();
    write_slides();
    tile_seeds_make(write_seed);
    write_images();
    write_image_slides();
    write_label_images();
    write_tar();
    write_wavs();
    write_checkpoint();
    write_plan();
    return 0;
}
