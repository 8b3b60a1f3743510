/* cmd_tissue.c: microtome tissue: slides -> tissue masks, images and outlines. */
#include <stddef.h>
#include "base/json.h"
#include "cli/cluster.h"
#include "tissue/cohort.h"

struct options {
    struct common_options common;
    const char *output, *cache;
    int method;
    bool use_value, no_pen, icc, quality, overwrite, json;
    double close_um, open_um, min_area_um2, min_hole_um2, downsample, slide_mpp;
};

#define AT(field) offsetof(struct options, field)

static const struct arg args[] = {
    OUTPUT_ARG("folder for the results"),
    CHOICE_ARG("method", method, "NAME", "process", tissue_method_names,
               "fda: Otsu on hue and saturation; process: on grey; ncrf: on RGB and saturation; "
               "none: all of the slide is tissue, for fields cut from tissue"),
    FLAG_ARG("use-value", use_value, "fda: also drop pale and black areas, as for training"),
    FLAG_ARG("no-pen", no_pen, "keep pen marks and black areas"),
    REAL_ARG("close", close_um, "UM", "20", 0, 1e6, "close gaps of up to twice this radius"),
    REAL_ARG("open", open_um, "UM", "10", 0, 1e6,
             "drop strands thinner than twice this radius, if pixels are fine enough"),
    REAL_ARG("min-area", min_area_um2, "UM2", "10000", 0, 1e12, "drop smaller pieces of tissue"),
    REAL_ARG("min-hole", min_hole_um2, "UM2", "20000", 0, 1e12, "fill smaller holes"),
    REAL_ARG("downsample", downsample, "N", "32", 1, 1024, "level-0 pixels per mask pixel"),
    FLAG_ARG("quality", quality,
             "also mark tissue that is out of focus, folded, or under pen or air bubbles"),
    SLIDE_MPP_ARG,
    ICC_ARG,
    CACHE_ARG(CACHE_IN_RESULTS),
    FLAG_ARG("json", json, "print the results as JSON"),
    FLAG_ARG("overwrite", overwrite, "redo existing results"),
    COMMON_ARGS,
};

struct printer {
    FILE *out;
    bool as_json, quality;
    struct json_out json; /* opened with the first slide */
};

static void print_json(struct json_out *json, const struct tissue_row *row, bool quality)
{
    const struct tissue_mask *mask = &row->measures;
    json_out_object_line(json, NULL);
    json_out_text(json, "slide", row->entry->name);
    if (row->state == RUN_FAILED) {
        json_out_text(json, "error", row->error);
    } else {
        if (mask->mpp > 0)
            json_out_real(json, "area_mm2", mask->area_mm2);
        else
            json_out_text(json, "area_mm2", NULL);
        json_out_real(json, "fraction", mask->fraction);
        json_out_array_line(json, "box_l0");
        json_out_int(json, NULL, mask->box_x);
        json_out_int(json, NULL, mask->box_y);
        json_out_int(json, NULL, mask->box_width);
        json_out_int(json, NULL, mask->box_height);
        json_out_close_array(json);
        for (int kind = 1; quality && kind < QUALITY_KINDS; kind++)
            json_out_real(json, quality_share_names[kind], row->quality.share[kind]);
    }
    json_out_close_object(json);
}

static void print_line(FILE *stream, const struct tissue_row *row, bool quality)
{
    const struct tissue_mask *mask = &row->measures;
    if (row->state == RUN_FAILED)
        return;
    fprintf(stream, "%s: ", row->entry->name);
    if (mask->tissue_px == 0) {
        fprintf(stream, "no tissue\n");
        return;
    }
    if (mask->mpp > 0)
        fprintf(stream, "%.3f mm2, ", mask->area_mm2);
    fprintf(stream, "%.2f %% of the slide, box %lld,%lld %lldx%lld", 100 * mask->fraction,
            (long long)mask->box_x, (long long)mask->box_y, (long long)mask->box_width,
            (long long)mask->box_height);
    for (int kind = 1; quality && kind < QUALITY_KINDS; kind++)
        fprintf(stream, ", %s %.1f %%", quality_share_names[kind], 100 * row->quality.share[kind]);
    fputc('\n', stream);
}

static void print_slide(void *arg, const struct tissue_row *row)
{
    struct printer *printer = arg;
    if (!printer->as_json) {
        print_line(printer->out, row, printer->quality);
        return;
    }
    if (!printer->json.stream) {
        json_out_begin(&printer->json, printer->out);
        json_out_array(&printer->json, NULL);
    }
    print_json(&printer->json, row, printer->quality);
}

static bool run_command(struct app *app, const void *options, const struct args_result *operands,
                        struct err *err)
{
    const struct options *o = options;
    struct slide_list list = { 0 };
    struct printer printer = { .out = app->out, .as_json = o->json, .quality = o->quality };
    struct tissue_request request = {
        .slides = &list,
        .options = { .method = (enum tissue_method)o->method,
                     .use_value = o->use_value,
                     .remove_pen = !o->no_pen,
                     .close_um = o->close_um,
                     .open_um = o->open_um,
                     .min_area_um2 = o->min_area_um2,
                     .min_hole_um2 = o->min_hole_um2,
                     .downsample = o->downsample },
        .icc = o->icc,
        .quality = o->quality,
        .slide_mpp = o->slide_mpp,
        .cache = o->cache,
        .folder = o->output,
        .overwrite = o->overwrite,
        .argc = app->argc,
        .argv = app->argv,
        .on_slide = print_slide,
        .arg = &printer,
    };
    if (o->use_value && o->method != TISSUE_FDA)
        return err_set(err, ERR_USAGE, "--use-value: only applies to --method fda");
    bool ok = slide_list_read(operands->operands, operands->n_operands, &list, err) &&
              cluster_check_idle(o->output, err) && tissue_cohort(&request, &app->ctx, err);
    if (printer.json.stream) {
        json_out_close_array(&printer.json);
        json_out_end(&printer.json);
    }
    slide_list_free(&list);
    return ok;
}

const struct command cmd_tissue = {
    .spec = { .name = "tissue",
              .summary = "find the tissue on slides",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "Looks for tissue on an overview of every slide and writes <slide>_mask.png, "
                  "<slide>_tissue.png (the outline on the overview, for viewing) and "
                  "<slide>_tissue.geojson (outlines in level-0 pixels, for QuPath). " SLIDES_ARE
                  " Prints the area, fraction and bounding box of the tissue. With --quality, also "
                  "writes <slide>_quality.png (0 good, 1 blur, 2 fold, 3 pen, 4 bubble), "
                  "<slide>_quality_overlay.png and <slide>_quality.geojson, and prints how much of "
                  "the tissue is affected. Existing results are kept; a slide that cannot be read "
                  "is reported and skipped.",
              .example = "microtome tissue cohort/slides -o masks\n"
                         "microtome tissue cohort/slides -o masks --quality\n"
                         "microtome tissue a.svs -o masks --method ncrf --min-area 50000 --json",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct options),
    .run = run_command,
};
