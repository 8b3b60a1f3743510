/* cmd_nuclei.c: microtome nuclei: slides or images -> a table of their nuclei, outlines, labels. */
#include <math.h>
#include <stddef.h>
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "cli/nuclei.h"
#include "nuclei/settings.h"
#include "tissue/quality.h"

#define AT(field) offsetof(struct nuclei_args, field)
#define BYTES_PER_PX 40 /* of a tile: pixels, labels, and what finding nuclei takes */

/* TISSUE_FDA and the others follow auto. */
static const char *const methods[] = { "auto", "fda", "process", "ncrf", "none", NULL };

static const struct arg args[] = {
    OUTPUT_ARG("folder for the results"),
    REAL_ARG(
        "mpp", mpp, "UM", NULL, 0.05, NUCLEI_COARSEST_MPP,
        "um/px at which nuclei are looked for; default: the finest level of 0.2 um/px or more, "
        "as it is stored"),
    SLIDE_MPP_ARG,
    TEXT_ARG("model", model, "MODEL", NULL,
             "find nuclei with this network instead, as trained with objective: segment; see "
             "docs/nuclei.md for when it is better"),
    TEXT_ARG("labels", labels, "DIR", NULL,
             "measure these nuclei instead of finding some: <slide>.geojson of QuPath or StarDist, "
             "<slide>.json of HoVer-Net, <slide>.png or .npy with a number for each nucleus"),
    TEXT_ARG(
        "truth", truth, "DIR", NULL,
        "also compare with these nuclei, in the same forms: F1 at an IoU of 0.5, AJI and PQ of "
        "each slide and of all"),
    CHOICE_ARG("method", method, "NAME", "auto", methods,
               "how tissue is found; none: everywhere; auto: none for images and with --labels, "
               "process for slides"),
    TEXT_ARG("tissue", tissue, "DIR", NULL,
             "folder with <slide>_mask.png as written by 'microtome tissue', instead of --method"),
    OMIT_ARG,
    TEXT_ARG("settings", settings, "LIST", NULL,
             "how nuclei are found: NAME=VALUE, separated by commas, e.g. "
             "'level=0.5,min_area_um2=12'; see docs/nuclei.md"),
    FLAG_ARG("no-label-images", no_label_images, "do not write <slide>_labels.png"),
    INT_ARG("tile", tile, "PX", "2048", 256, 16384,
            "side of the squares that slides are cut into, without their margins; a thread needs "
            "about 25 bytes per pixel of one"),
    INT_ARG("group", group, "N", "16", 1, 1e6, "squares per task"),
    ICC_ARG,
    CACHE_ARG(CACHE_IN_RESULTS),
    FLAG_ARG("json", json, "print the results as JSON"),
    FLAG_ARG("overwrite", overwrite, "redo existing results"),
    CLUSTER_ARGS,
    CLUSTER_MEMORY_ARG,
    CLUSTER_ARRAY_ARGS,
    COMMON_ARGS,
};

static bool open_net(const struct nuclei_args *given, const struct ctx *ctx,
                     struct nuclei_options *options, struct nuclei_net **net, struct err *err)
{
    if (!given->model)
        return true;
    if (given->labels)
        return err_set(err, ERR_USAGE, "--model: finds nuclei, but --labels gives them; omit one");
    if (!nuclei_net_open(given->model, &options->settings, pool_workers(ctx->pool), net, err))
        return false;
    options->finder = nuclei_net_finder(*net);
    return true;
}

static bool check_folder(const char *option, const char *path, struct err *err)
{
    return !path || file_is_folder(path) ||
           err_set(err, ERR_USAGE, "--%s: %s: %s", option, path,
                   file_exists(path) ? "is not a folder" : "no such folder");
}

static bool check_folders(const struct nuclei_args *given, struct err *err)
{
    return check_folder("labels", given->labels, err) && check_folder("truth", given->truth, err) &&
           check_folder("tissue", given->tissue, err);
}

bool nuclei_args_request(const struct nuclei_args *given, const struct ctx *ctx,
                         struct nuclei_request *out, struct nuclei_net **net, struct err *err)
{
    out->options = nuclei_options_defaults();
    out->options.mpp = given->mpp;
    out->options.slide_mpp = given->slide_mpp;
    out->options.cache = given->cache;
    out->options.icc = given->icc;
    out->options.method = given->method > 0 ? given->method - 1 : NUCLEI_TISSUE_AUTO;
    out->options.tissue = given->tissue;
    out->options.labels = given->labels;
    out->options.label_images = !given->no_label_images;
    out->options.tile_px = given->tile;
    out->options.group_tiles = given->group;
    out->truth = given->truth;
    if (given->truth && given->no_label_images)
        return err_set(err, ERR_USAGE, "--truth compares label images; omit --no-label-images");
    if (given->labels && given->settings)
        return err_set(
            err, ERR_USAGE,
            "--settings: change how nuclei are found; with --labels they are only measured");
    if (given->settings &&
        !nuclei_settings_parse(given->settings, given->model != NULL, &out->options.settings, err))
        return false;
    return check_folders(given, err) &&
           (!given->omit || quality_parse(given->omit, "omit", &out->options.omit, err)) &&
           open_net(given, ctx, &out->options, net, err);
}

/* --- printing --- */

static void json_agreement(struct json_out *json, const struct nuclei_agreement *a)
{
    json_out_real(json, "f1", nuclei_f1(a));
    json_out_real(json, "aji", nuclei_aji(a));
    json_out_real(json, "pq", nuclei_pq(a));
}

static void print_json(struct nuclei_printer *p, const struct nuclei_row *row)
{
    const struct nuclei_summary *s = &row->summary;
    if (!p->json.stream) {
        json_out_begin(&p->json, p->out);
        json_out_object(&p->json, NULL);
        json_out_array(&p->json, "slides");
    }
    json_out_object_line(&p->json, NULL);
    json_out_text(&p->json, "slide", row->entry->name);
    if (row->state == RUN_FAILED) {
        json_out_text(&p->json, "error", row->error);
    } else {
        json_out_text(&p->json, "state", run_state_names[row->state]);
        json_out_int(&p->json, "nuclei", s->n);
        json_out_real(&p->json, "tissue_mm2", s->tissue_mm2);
        json_out_real(&p->json, "mpp", s->mpp);
        for (int f = 0; f < NUCLEUS_FEATURES; f++) {
            json_out_object_line(&p->json, nucleus_features[f].column);
            json_out_real(&p->json, "mean", s->mean[f]);
            json_out_real(&p->json, "std", s->deviation[f]);
            json_out_close_object(&p->json);
        }
        if (p->truth)
            json_agreement(&p->json, &row->agreement);
    }
    json_out_close_object(&p->json);
}

static void print_agreement(FILE *stream, const struct nuclei_agreement *a)
{
    if (a->n_truth + a->n_found == 0)
        fputs("no nuclei in either", stream);
    else
        fprintf(stream, "F1 %.3f, AJI %.3f, PQ %.3f", nuclei_f1(a), nuclei_aji(a), nuclei_pq(a));
}

void nuclei_print_slide(void *arg, const struct nuclei_row *row)
{
    struct nuclei_printer *p = arg;
    const struct nuclei_summary *s = &row->summary;
    if (p->as_json) {
        print_json(p, row);
        return;
    }
    if (row->state == RUN_FAILED)
        return;
    p->printed++;
    fprintf(p->out, "%s: ", row->entry->name);
    if (row->state == RUN_NO_TISSUE) {
        fputs("no tissue\n", p->out);
        return;
    }
    fprintf(p->out, "%lld %s", (long long)s->n, s->n == 1 ? "nucleus" : "nuclei");
    if (s->n > 0)
        fprintf(p->out, ", %.0f per mm2, area %.1f um2 (standard deviation %.1f)",
                (double)s->n / s->tissue_mm2, s->mean[NUCLEUS_AREA], s->deviation[NUCLEUS_AREA]);
    if (p->truth) {
        fputs("; ", p->out);
        print_agreement(p->out, &row->agreement);
    }
    fputc('\n', p->out);
}

void nuclei_print_end(struct nuclei_printer *p, const struct nuclei_agreement *all)
{
    if (p->as_json && p->json.stream) {
        json_out_close_array(&p->json);
        if (p->truth) {
            json_out_object_line(&p->json, "all");
            json_agreement(&p->json, all);
            json_out_close_object(&p->json);
        }
        json_out_close_object(&p->json);
        json_out_end(&p->json);
    } else if (p->truth && !p->as_json && p->printed > 0) {
        fprintf(p->out, "all: ");
        print_agreement(p->out, all);
        fputc('\n', p->out);
    }
}

/* --- running --- */

static bool run_here(struct app *app, const struct nuclei_args *given,
                     struct nuclei_request *request, struct err *err)
{
    struct nuclei_printer printer = { .out = app->out,
                                      .as_json = given->json,
                                      .truth = given->truth != NULL };
    struct nuclei_agreement all = { 0 };
    request->on_slide = nuclei_print_slide;
    request->arg = &printer;
    bool ok =
        cluster_check_idle(given->output, err) && nuclei_cohort(request, &app->ctx, &all, err);
    nuclei_print_end(&printer, &all);
    return ok;
}

/* What a job needs: a tile with its margins for each thread, at 0.2 um/px at the finest, and a
 * label image. */
static double memory_mb(const struct nuclei_args *given)
{
    struct nuclei_settings settings = nuclei_defaults();
    double mpp = given->mpp > 0 ? given->mpp : NUCLEI_FINEST_MPP;
    double side = (double)given->tile + 2 * nuclei_margin_um(&settings) / mpp;
    return 600 + (double)given->cluster.cpus * BYTES_PER_PX * side * side / (1 << 20);
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct nuclei_args *given = options;
    struct slide_list slides = { 0 };
    struct nuclei_request request = { .slides = &slides,
                                      .folder = given->output,
                                      .overwrite = given->overwrite,
                                      .argc = app->argc,
                                      .argv = app->argv };
    struct nuclei_net *net = NULL;
    struct cluster_options cluster = given->cluster;
    if (!(cluster.memory_mb > 0))
        cluster.memory_mb = memory_mb(given);
    struct task_request tasks = { .kind = &nuclei_tasks,
                                  .folder = given->output,
                                  .argc = app->argc,
                                  .argv = app->argv,
                                  .slides = &slides,
                                  .request = &request,
                                  .options = &cluster };
    bool ok = cluster_check(&given->cluster, err) &&
              nuclei_args_request(given, &app->ctx, &request, &net, err) &&
              slide_list_read(operands->operands, operands->n_operands, &slides, err);
    if (ok && given->cluster.on > 0)
        ok = cluster_submit(&tasks, &app->ctx, app->out, err);
    else if (ok)
        ok = run_here(app, given, &request, err);
    slide_list_free(&slides);
    nuclei_net_close(net);
    return ok;
}

const struct command cmd_nuclei = {
    .spec = { .name = "nuclei",
              .summary = "find and measure the nuclei on slides and images",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1000000,
              .description =
                  "Finds the nuclei of H&E-stained tissue by a local threshold of haematoxylin and "
                  "a watershed, and writes for each slide or image <slide>_nuclei.csv (place, "
                  "area, perimeter, shape, stain and texture of each nucleus, in um), "
                  "<slide>_nuclei.geojson (the outlines as detections, for QuPath) and, up to 8192 "
                  "x 8192 px, <slide>_labels.png (16 bit: the number of each pixel's nucleus). "
                  "A network finds them instead with --model; nuclei of other programs are "
                  "measured "
                  "with --labels. " SLIDES_ARE
                  " Run again, an interrupted run continues; complete slides are kept, and those "
                  "that cannot be read are recorded in slides.csv and skipped. The same options "
                  "give the same bytes for any number of threads and tasks.",
              .example = "microtome nuclei slides.csv -o nuclei\n"
                         "microtome nuclei images/ -o out --slide-mpp 0.25 --truth masks/\n"
                         "microtome nuclei a.svs -o measured --labels stardist/",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct nuclei_args),
    .run = run,
};
