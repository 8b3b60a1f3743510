/* phantom.c: see phantom.h. */
#include "phantom/phantom.h"

#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/claim.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "phantom/phantom_annotation.h"
#include "phantom/phantom_artefacts.h"
#include "phantom/phantom_classes.h"
#include "phantom/phantom_draw.h"
#include "phantom/phantom_fields.h"
#include "phantom/phantom_layout.h"
#include "phantom/phantom_nuclei.h"
#include "phantom/phantom_pen.h"
#include "slide/tiff_pyramid.h"
#include "base/text.h"

enum { ANNOTATION_ROOM = 64 };

struct cohort {
    const struct phantom_options *options;
    const struct ctx *ctx;
    struct phantom_painter *painter;
    unsigned centers; /* phantom_scene_make */
    struct phantom_classes classes;
    struct phantom_scene scene;            /* of the current slide */
    struct phantom_artefact_painter *room; /* NULL: without artefacts */
    struct phantom_artefacts artefacts;    /* of the current slide */
};

static void make_scene(struct cohort *c, int64_t index)
{
    const struct phantom_options *o = c->options;
    phantom_scene_make(o->seed, index, o->size_px, c->centers, &c->scene);
    phantom_layout_apply(&c->scene, (enum phantom_layout)o->layout);
    phantom_pen_apply(&c->scene, (enum phantom_pen_rule)o->pen);
}

static char *slide_path(const struct cohort *c)
{
    return text_format("%s/slides/%s.tiff", c->options->folder, c->scene.name);
}

/* The description stored in a finished slide, by which a later run recognises it. */
static char *describe(const struct cohort *c)
{
    const struct phantom_scene *scene = &c->scene;
    char center[32] = "", classes[PHANTOM_CLASSES_ROOM];
    if (c->centers)
        snprintf(center, sizeof center, ", center %d", scene->center);
    phantom_classes_text(&c->classes, ",", classes);
    char pen[32] = "", layout[32] = "";
    if (c->options->pen != PEN_SOME)
        snprintf(pen, sizeof pen, ", pen %s", phantom_pen_names[c->options->pen]);
    if (c->options->layout != LAYOUT_NODE)
        snprintf(layout, sizeof layout, ", layout %s", phantom_layout_names[c->options->layout]);
    return text_format("microtome phantom 1, seed %llu, slide %lld, %lld px%s%s%s%s%s%s",
                       (unsigned long long)scene->seed, (long long)scene->index,
                       (long long)scene->size_px, center, classes[0] ? ", classes " : "", classes,
                       c->options->artefacts ? ", artefacts" : "", pen, layout);
}

static struct tiff_pyramid_options pyramid_options(const struct phantom_scene *scene)
{
    return (struct tiff_pyramid_options){ .width = scene->size_px,
                                          .height = scene->size_px,
                                          .mpp = PHANTOM_MPP,
                                          .tile_px = PHANTOM_TILE_PX };
}

static bool draw_tile(void *arg, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t *px,
                      int64_t stride_bytes, int worker, struct err *err)
{
    (void)err;
    struct cohort *c = arg;
    if (c->room)
        phantom_artefacts_paint(c->room, c->painter, &c->artefacts, x, y, width, height, px,
                                stride_bytes, worker);
    else
        phantom_paint(c->painter, x, y, width, height, px, stride_bytes, worker);
    return true;
}

/* Sets *complete if the slide exists; a slide of another cohort is an error, never overwritten. */
static bool look_for_slide(const struct cohort *c, bool *complete, struct err *err)
{
    char *path = slide_path(c), *want = describe(c), *found = NULL;
    bool ok = (path && want) || err_memory(err, c->options->folder);
    *complete = ok && file_exists(path);
    if (*complete) {
        ok = tiff_pyramid_description(path, &found, err);
        if (ok && strcmp(found, want) != 0)
            ok = err_set(
                err, ERR_USAGE,
                "%s: was made with another --seed, --size, --centers, --classes, --artefacts, "
                "--pen or --layout; choose another folder",
                path);
    }
    free(path), free(want), free(found);
    return ok;
}

/* The annotation of the current slide, relative to the cohort: "" if it has none. */
static void annotation_name(const struct cohort *c, char *out, size_t room)
{
    out[0] = '\0';
    if (c->scene.n_lesions > 0 || c->classes.n > 0)
        snprintf(out, room, "annotations/%s.%s", c->scene.name,
                 c->classes.n > 0 ? "geojson" : "xml");
}

static bool write_annotation(const struct cohort *c, struct err *err)
{
    char name[ANNOTATION_ROOM];
    annotation_name(c, name, sizeof name);
    char *path = text_format("%s/%s", c->options->folder, name);
    bool ok = path || err_memory(err, c->options->folder);
    if (ok && c->classes.n > 0)
        ok = phantom_classes_write(path, &c->scene, &c->classes, err);
    else if (ok && c->scene.n_lesions > 0)
        ok = phantom_annotation_write(path, &c->scene, err);
    free(path);
    return ok;
}

static bool write_artefacts(struct cohort *c, struct err *err)
{
    char *path = text_format("%s/artefacts/%s_quality.png", c->options->folder, c->scene.name);
    phantom_artefacts_place(&c->scene, &c->artefacts);
    bool ok = path ? phantom_artefacts_write(path, &c->artefacts, c->scene.size_px, err)
                   : err_memory(err, c->options->folder);
    free(path);
    return ok;
}

/* The annotation is written first: if a slide exists, its annotation does too. */
static bool make_slide(struct cohort *c, struct err *err)
{
    char *path = slide_path(c), *description = describe(c);
    struct tiff_pyramid_options options = pyramid_options(&c->scene);
    options.description = description;
    bool ok = (path && description) || err_memory(err, c->options->folder);
    ok = ok && write_annotation(c, err) && (!c->room || write_artefacts(c, err));
    if (ok) {
        phantom_painter_use(c->painter, &c->scene);
        ok = tiff_pyramid_write(path, &options, draw_tile, c, c->ctx, err);
    }
    free(path), free(description);
    return ok;
}

static void write_row(const struct cohort *c, FILE *stream)
{
    const struct phantom_scene *scene = &c->scene;
    char annotation[ANNOTATION_ROOM];
    annotation_name(c, annotation, sizeof annotation);
    fprintf(stream, "slides/%s.tiff,%g,%s,%s,%s,%d,%d,%s\n", scene->name, PHANTOM_MPP,
            phantom_layout_label(scene), annotation, scene->patient, scene->node, scene->center,
            scene->test ? "test" : "train");
}

static bool write_list(struct cohort *c, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, c->options->folder, "slides.csv", err))
        return false;
    fputs("slide,mpp,label,annotation,patient,node,center,split\n", out.stream);
    for (int64_t i = 0; i < c->options->n_slides; i++) {
        make_scene(c, i);
        write_row(c, out.stream);
    }
    return file_out_commit(&out, err);
}

/* The order of the classes, for extract --class-map. */
static bool write_classes(const struct cohort *c, struct err *err)
{
    struct file_out out;
    char names[PHANTOM_CLASSES_ROOM];
    if (c->classes.n == 0)
        return true;
    if (!file_out_open_in(&out, c->options->folder, "classes.yaml", err))
        return false;
    phantom_classes_text(&c->classes, ", ", names);
    fprintf(out.stream, "classes: [%s]\nunlabelled: omit\n", names);
    return file_out_commit(&out, err);
}

static bool make_folders(const struct phantom_options *options, struct err *err)
{
    static const char *const parts[] = { "slides", "annotations", "artefacts", "nuclei", "fields" };
    const bool needed[] = { true, true, options->artefacts, options->nuclei,
                            options->n_fields > 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof parts / sizeof *parts; i++) {
        if (!needed[i])
            continue;
        char *path = text_format("%s/%s", options->folder, parts[i]);
        ok = path ? file_make_folder(path, err) : err_memory(err, options->folder);
        free(path);
    }
    return ok;
}

/* Sets missing[i] for each missing slide. Checked before any slide is made, so that a wrong folder
 * is rejected at once. */
static bool find_missing(struct cohort *c, bool *missing, int64_t *n, struct err *err)
{
    for (int64_t i = 0; i < c->options->n_slides; i++) {
        bool complete;
        make_scene(c, i);
        if (!look_for_slide(c, &complete, err))
            return false;
        missing[i] = !complete;
        *n += missing[i];
    }
    return true;
}

static bool make_missing(struct cohort *c, const bool *missing, int64_t n, struct err *err)
{
    bool ok = true;
    struct tiff_pyramid_options shape = pyramid_options(&c->scene);
    console_begin(c->ctx->console, "phantom", n * tiff_pyramid_tiles(&shape), "tiles");
    for (int64_t i = 0; ok && i < c->options->n_slides; i++) {
        if (!missing[i])
            continue;
        make_scene(c, i);
        ok = make_slide(c, err);
    }
    console_end(c->ctx->console);
    return ok;
}

/* The truth of all slides that have none, whenever they were made. */
static bool make_nuclei(struct cohort *c, struct err *err)
{
    bool ok = true;
    console_begin(c->ctx->console, "nuclei", c->options->n_slides, "slides");
    for (int64_t i = 0; ok && i < c->options->n_slides; i++) {
        make_scene(c, i);
        char *path = text_format("%s/nuclei/%s.geojson", c->options->folder, c->scene.name);
        ok = path || err_memory(err, c->options->folder);
        if (ok && !file_exists(path))
            ok = phantom_nuclei_write(path, &c->scene, c->ctx, err);
        console_advance(c->ctx->console, 1);
        free(path);
    }
    console_end(c->ctx->console);
    return ok;
}

/* Fields of all slides, whenever they were made. */
static bool make_fields(struct cohort *c, struct err *err)
{
    char *folder = text_format("%s/fields", c->options->folder);
    bool ok = folder || err_memory(err, c->options->folder);
    console_begin(c->ctx->console, "fields", c->options->n_slides, "slides");
    for (int64_t i = 0; ok && i < c->options->n_slides; i++) {
        make_scene(c, i);
        phantom_painter_use(c->painter, &c->scene);
        ok = phantom_fields_write(folder, c->painter, &c->scene, c->options->n_fields, err);
        if (ok && ctx_stopped(c->ctx))
            ok = err_stopped(err);
        console_advance(c->ctx->console, 1);
    }
    console_end(c->ctx->console);
    free(folder);
    return ok;
}

/* "0,3" -> bits 0 and 3. */
static bool parse_centers(const char *text, unsigned *centers, struct err *err)
{
    *centers = 0;
    for (const char *at = text; at && *at; at++) {
        bool digit = *at >= '0' && *at < '0' + PHANTOM_CENTERS;
        if (!digit || (at[1] != ',' && at[1] != '\0') || (at[1] == ',' && at[2] == '\0'))
            return err_set(
                err, ERR_USAGE,
                "--centers %s: expected numbers from 0 to %d separated by commas, e.g. 0,3", text,
                PHANTOM_CENTERS - 1);
        *centers |= 1U << (*at - '0');
        at += at[1] == ',';
    }
    return true;
}

bool phantom_cohort(const struct phantom_options *options, const struct ctx *ctx, struct err *err)
{
    struct cohort c = { .options = options, .ctx = ctx };
    int64_t n = options->n_slides, n_missing = 0;
    if (n < 1 || options->size_px < PHANTOM_SIZE_MIN || options->size_px > PHANTOM_SIZE_MAX)
        return err_set(err, ERR_USAGE, "phantom: needs at least one slide of %d to %d px",
                       PHANTOM_SIZE_MIN, PHANTOM_SIZE_MAX);
    if (options->artefacts && options->pen != PEN_SOME)
        return err_set(err, ERR_USAGE,
                       "--pen: not with --artefacts, which have their own pen marks");
    if (options->artefacts && options->n_fields > 0)
        return err_set(err, ERR_USAGE,
                       "--fields: not with --artefacts, which fields do not show; use two folders");
    if (!parse_centers(options->centers, &c.centers, err) ||
        !phantom_classes_parse(options->classes, &c.classes, err))
        return false;
    bool *missing = calloc((size_t)n, sizeof *missing);
    struct claim *claim = NULL;
    bool ok = (missing || err_memory(err, "phantom")) && make_folders(options, err) &&
              claim_take(options->folder, &claim, err) &&
              phantom_painter_new(pool_workers(ctx->pool), &c.painter, err) &&
              (!options->artefacts ||
               phantom_artefact_painter_new(pool_workers(ctx->pool), &c.room, err)) &&
              find_missing(&c, missing, &n_missing, err);
    if (ok && n_missing < n)
        console_note(ctx->console, "%lld of %lld slides already exist and are kept",
                     (long long)(n - n_missing), (long long)n);
    ok = ok && (n_missing == 0 || make_missing(&c, missing, n_missing, err));
    ok = ok && (!options->nuclei || make_nuclei(&c, err)) &&
         (options->n_fields == 0 || make_fields(&c, err));
    ok = ok && write_classes(&c, err) && write_list(&c, err);
    phantom_painter_free(c.painter);
    phantom_artefact_painter_free(c.room);
    free(missing);
    claim_release(claim);
    return ok;
}
