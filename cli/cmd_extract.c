/* cmd_extract.c: microtome extract: slides -> patch stores. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/json.h"
#include "cli/cluster.h"
#include "patch/extract.h"
#include "tissue/quality.h"
#include "base/text.h"

#define DEFAULT_MARGIN 112
#define DEFAULT_GROUP 400
#define DEFAULT_RANDOM_WHITE 0.7
#define DEFAULT_RANDOM_BLACK 0.5

struct extract_args {
    struct common_options common;
    const char *output, *cache, *annotations, *class_map, *stain_template, *target, *label_column,
        *survival, *omit;
    bool icc, dense, overwrite, preview, json;
    int64_t random, patch, margin, stride, level, seed, group;
    double mpp, mpp_tolerance, slide_mpp, tissue_fraction, white, black, group_memory;
    int method, label_rule, stain, layout;
    struct cluster_options cluster;
};

extern const struct command cmd_extract;

#define AT(field) offsetof(struct extract_args, field)

static const struct arg args[] = {
    OUTPUT_ARG("folder for the stores, run.json, slides.csv and lookup.csv"),
    FLAG_ARG("dense", dense, "extract every tile of the grid that has tissue"),
    INT_ARG("random", random, "N", NULL, 1, 10000000,
            "extract N random patches of each class from each slide"),
    INT_ARG("patch", patch, "PX", "224", 1, 16384,
            "width and height of a tile, without its margin"),
    INT_ARG("margin", margin, "PX", "112", 0, 16384,
            "pixels stored around a tile of the dense grid"),
    INT_ARG("stride", stride, "PX", NULL, 1, 1 << 20,
            "distance between tiles of the dense grid; default: the tile's width"),
    REAL_ARG("mpp", mpp, "UM", NULL, 0.01, 1000,
             "resolution of the patches in um/px, resampled from the best level"),
    REAL_ARG("mpp-tolerance", mpp_tolerance, "F", "0.2", 0, 100,
             "how much coarser than --mpp a slide may be, as a fraction of it; such slides are "
             "upsampled"),
    { .name = "level",
      .type = ARG_INT,
      .offset = AT(level),
      .value = "N",
      .max = 63,
      .excludes = "mpp",
      .help = "level of the slide to cut from, instead of --mpp; 0 is the finest" },
    SLIDE_MPP_ARG,
    ICC_ARG,
    CACHE_ARG(CACHE_IN_RESULTS),
    CHOICE_ARG("method", method, "NAME", "process", tissue_method_names,
               "how tissue is found; none: all of the slide is tissue"),
    REAL_ARG("tissue-fraction", tissue_fraction, "F", "0.05", 0, 1,
             "minimum fraction of tissue in a tile"),
    OMIT_ARG,
    TEXT_ARG(
        "annotations", annotations, "PATH", NULL,
        "folder with <slide>.xml, .json, .geojson, .annotations or .png (label image) for slides "
        "that have no annotation in the slide list; or a COCO file"),
    CLASS_MAP_ARG,
    CHOICE_ARG("label-rule", label_rule, "NAME", "majority", label_rule_names,
               "what makes a tile tumour: at least half of its pixels (normal if none is), any "
               "pixel, its centre, or the slide's label; or no labels. The same for other classes"),
    TEXT_ARG("label-column", label_column, "NAME", NULL,
             "column of the slide list with the slides' labels (default: label)"),
    TEXT_ARG(
        "survival", survival, "TIME,EVENT", NULL,
        "columns of the slide list with survival times (0 or more) and events (1: it happened, "
        "0: censored), to be kept in the stores"),
    TEXT_ARG("target", target, "NUMBER", NULL,
             "also store a number for every tile, to be learnt with 'objective: regress': "
             "coverage:CLASS (such as tumor) or coverage:tissue, the fraction of the tile that it "
             "covers; or column:NAME, the slide's number in a column of the slide list; with "
             "--random, --label-rule any also draws tiles that are covered in part"),
    REAL_ARG("white", white, "F", NULL, 0.001, 1,
             "drop tiles with a larger fraction of white pixels (R, G and B above 200); default: "
             "0.7 for --random, none dropped for --dense"),
    REAL_ARG("black", black, "F", NULL, 0.001, 1,
             "the same for black pixels (R, G and B below 30); default: 0.5 for --random, none "
             "dropped for --dense"),
    CHOICE_ARG("stain", stain, "NAME", "none", stain_method_names,
               "normalise the stains of each slide"),
    TEXT_ARG("template", stain_template, "PNG", NULL,
             "image to normalise the stains to, instead of the built-in template"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same random patches"),
    INT_ARG("group", group, "N", "400", 1, 1e9,
            "patches per group (groups are read as a whole); see 'microtome tune'"),
    REAL_ARG("group-memory", group_memory, "MB", NULL, 0.001, 1e7,
             "memory for the pixels of a group, instead of --group"),
    CHOICE_ARG("layout", layout, "NAME", "blocks", store_layout_names,
               "layout of the store; see docs/formats.md"),
    FLAG_ARG("overwrite", overwrite, "replace existing stores"),
    FLAG_ARG("preview", preview, "also write <slide>_patches.png, an overview of the patches"),
    FLAG_ARG("json", json, "print the result as JSON"),
    CLUSTER_ARGS,
    CLUSTER_ARRAY_ARGS,
    CLUSTER_MEMORY_ARG,
    COMMON_ARGS,
};

static bool check_modes(const struct extract_args *given, struct err *err)
{
    if (given->dense == (given->random > 0))
        return err_set(err, ERR_USAGE, "%s",
                       given->dense ? "--dense and --random cannot be combined"
                                    : "pass --dense or --random N");
    if (given->random > 0 && given->margin != DEFAULT_MARGIN && given->margin != 0)
        return err_set(err, ERR_USAGE,
                       "--margin: only --dense stores a margin; use a larger --patch");
    if (given->random > 0 && given->stride > 0)
        return err_set(err, ERR_USAGE, "--stride: only --dense has a grid");
    if (given->stain_template && given->stain == STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "--template: pass --stain reinhard, macenko or vahadane too");
    if (given->group_memory > 0 && given->group != DEFAULT_GROUP)
        return err_set(err, ERR_USAGE, "--group and --group-memory cannot be combined");
    bool classes = given->class_map && given->label_rule != LABEL_SLIDE;
    if ((given->annotations || classes) && given->label_rule > LABEL_CENTER)
        return err_set(err, ERR_USAGE, "%s: --label-rule %s does not use annotations",
                       given->annotations ? "--annotations" : "--class-map",
                       label_rule_names[given->label_rule]);
    return true;
}

static double threshold(double given, bool random, double otherwise)
{
    return given > 0 ? given : random ? otherwise : 1;
}

/* Slide labels need a map only for other classes than normal and tumor. */
static bool check_map(const struct extract_args *given, const struct class_map *map,
                      struct err *err)
{
    return given->label_rule != LABEL_SLIDE || !map || !class_map_is_plain(map) ||
           err_set(err, ERR_USAGE,
                   "--class-map: --label-rule slide does not use annotations; to name the classes "
                   "of slide labels, pass '{classes: [A, B]}'");
}

/* *map is the caller's, and used by the options; free with class_map_free. */
static bool make_options(const struct extract_args *given, struct extract_options *out,
                         struct class_map **map, struct err *err)
{
    struct patch_target target;
    unsigned omit = 0;
    if (given->omit && !quality_parse(given->omit, "omit", &omit, err))
        return false;
    if (!class_map_parse(given->class_map, map, err) || !check_map(given, *map, err) ||
        !target_of_text(given->target, *map, &target, err) ||
        !extract_check_target(&target, (enum label_rule)given->label_rule,
                              (enum store_layout)given->layout, err))
        return false;
    bool random = given->random > 0;
    *out = (struct extract_options){
        .per_class = given->random,
        .grid = { .tile = given->patch,
                  .margin = random ? 0 : given->margin,
                  .stride = given->stride > 0 ? given->stride : given->patch },
        .raster = { .mpp = given->mpp,
                    .mpp_tolerance = given->mpp_tolerance,
                    .level = (int)given->level },
        .slide_mpp = given->slide_mpp,
        .cache = given->cache,
        .tissue_method = (enum tissue_method)given->method,
        .min_tissue = given->tissue_fraction,
        .omit = omit,
        .icc = given->icc,
        .annotations = given->annotations,
        .class_map = *map,
        .label_rule = (enum label_rule)given->label_rule,
        .target = target,
        .label_column = given->label_column,
        .max_white = threshold(given->white, random, DEFAULT_RANDOM_WHITE),
        .max_black = threshold(given->black, random, DEFAULT_RANDOM_BLACK),
        .stain = (enum stain_method)given->stain,
        .stain_template = given->stain_template,
        .seed = given->seed,
        .group = given->group,
        .layout = (enum store_layout)given->layout,
        .band_bytes = EXTRACT_BAND_BYTES,
        .batch_bytes = EXTRACT_BATCH_BYTES,
    };
    if (!extract_survival_columns(given->survival, out, err))
        return false;
    int64_t side = grid_patch(&out->grid);
    if (given->group_memory > 0) {
        double patches = given->group_memory * 1e6 / ((double)side * (double)side * 3);
        if (patches < 1)
            return err_set(err, ERR_USAGE,
                           "--group-memory: a single patch needs %.1f MB; pass more",
                           (double)(side * side * 3) / 1e6);
        out->group = (int64_t)patches;
    }
    return true;
}

static void print_rows(FILE *stream, const struct class_map *map, const struct extract_row *rows,
                       size_t n)
{
    int places[CLASS_MOST], classes = extract_columns(map, places);
    fprintf(stream, "%-32s %10s", "slide", "patches");
    for (int c = 0; c < classes; c++)
        fprintf(stream, " %10s", class_map_class(map, places[c]));
    fprintf(stream, " %8s  %s\n", "groups", "state");
    for (size_t i = 0; i < n; i++) {
        const struct extract_result *result = &rows[i].result;
        fprintf(stream, "%-32s %10lld", rows[i].slide, (long long)result->patches);
        for (int c = 0; c < classes; c++) {
            int width = (int)strlen(class_map_class(map, places[c]));
            fprintf(stream, " %*lld", width > 10 ? width : 10,
                    (long long)result->per_class[places[c]]);
        }
        fprintf(stream, " %8lld  %s\n", (long long)result->groups, run_state_names[rows[i].state]);
    }
}

static void print_json(FILE *stream, const struct class_map *map, const struct extract_row *rows,
                       size_t n)
{
    int places[CLASS_MOST], classes = extract_columns(map, places);
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < n; i++) {
        const struct extract_result *result = &rows[i].result;
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", rows[i].slide);
        json_out_text(&json, "state", run_state_names[rows[i].state]);
        json_out_int(&json, "patches", result->patches);
        for (int c = 0; c < classes; c++)
            json_out_int(&json, class_map_class(map, places[c]), result->per_class[places[c]]);
        json_out_int(&json, "groups", result->groups);
        json_out_real(&json, "patch_mpp", result->mpp);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static void print_result(const struct extract_args *given, const struct class_map *map,
                         FILE *stream, const struct extract_row *rows, size_t n)
{
    if (n > 0 && given->json)
        print_json(stream, map, rows, n);
    else if (n > 0)
        print_rows(stream, map, rows, n);
}

/* --- on a cluster: a task is a slide --- */

struct extract_state {
    struct extract_request request;
    struct stain_fit target;
    struct class_map *class_map;
};

static void tasks_close(void *state)
{
    class_map_free(((struct extract_state *)state)->class_map);
}

static bool tasks_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    (void)ctx;
    struct extract_state *s = given->state;
    const struct extract_args *args_given = given->options;
    s->request.slides = given->slides;
    s->request.folder = given->list->folder;
    s->request.preview = args_given->preview;
    s->request.argc = given->list->argc;
    s->request.argv = given->list->argv;
    if (!make_options(args_given, &s->request.options, &s->class_map, err) ||
        !extract_target(&s->request.options, &s->target, err))
        return false;
    return (int64_t)given->slides->n == given->list->n ||
           err_set(err, ERR_FORMAT,
                   "%s/tasks/slides.csv: does not match the task list; submit again",
                   given->list->folder);
}

static bool tasks_extract(const struct task_given *given, const struct task *task, const char *path,
                          const struct ctx *ctx, struct err *err)
{
    const struct extract_state *s = given->state;
    const struct slide_entry *entry = &given->slides->entries[task->id - 1];
    struct extract_result result;
    return extract_check_inputs(entry, &s->request.options, task->inputs, err) &&
           extract_slide(entry, &s->request.options, &s->target, path, ctx, &result, err);
}

static bool tasks_count(const struct task_given *given, const struct task_end *ends,
                        const struct ctx *ctx, FILE *out, struct err *err)
{
    struct extract_state *s = given->state;
    size_t n = given->slides->n, n_rows = 0;
    struct run_outcome *tasks = calloc(n + 1, sizeof *tasks);
    struct extract_row *rows = calloc(n + 1, sizeof *rows);
    bool ok = (tasks && rows) || err_memory(err, "the slides");
    for (size_t i = 0; ok && i < n; i++)
        tasks[i] = (struct run_outcome){ ends[i].seconds, ends[i].cpu_s, ends[i].error };
    s->request.tasks = tasks;
    ok = ok && extract_cohort(&s->request, ctx, rows, &n_rows, err);
    print_result(given->options, s->class_map, out, rows, n_rows);
    free(tasks);
    free(rows);
    return ok;
}

/* The size of the file is a fair guess at the work. */
static bool tasks_list(const void *given, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    (void)ctx;
    const struct extract_request *request = given;
    bool ok = extract_look(request, err);
    for (size_t i = 0; ok && i < request->slides->n; i++) {
        const struct slide_entry *entry = &request->slides->entries[i];
        struct stat status;
        double cost = stat(entry->path, &status) == 0 ? (double)status.st_size : 0;
        char *file = text_format("%s.h5", entry->name);
        char inputs[INPUTS_ROOM]; /* empty if the slide cannot be read: its task says why */
        if (!extract_inputs(entry, &request->options, inputs, NULL))
            inputs[0] = 0;
        ok = file ? list_add(list, entry->name, 0, cost, file, "", inputs, err)
                  : err_memory(err, "the task list");
        free(file);
    }
    return ok;
}

const struct task_kind extract_tasks = {
    .command = &cmd_extract.spec,
    .options_size = sizeof(struct extract_args),
    .state_size = sizeof(struct extract_state),
    .keeps_slides = true,
    .list = tasks_list,
    .open = tasks_open,
    .run = tasks_extract,
    .finish = tasks_count,
    .close = tasks_close,
};

static bool run_here(struct app *app, const struct extract_args *given,
                     const struct extract_request *request, struct err *err)
{
    size_t n_rows = 0;
    struct extract_row *rows = calloc(request->slides->n + 1, sizeof *rows);
    bool ok = cluster_check_idle(given->output, err);
    ok = ok && (rows ? extract_cohort(request, &app->ctx, rows, &n_rows, err)
                     : err_memory(err, "the slides"));
    print_result(given, request->options.class_map, app->out, rows, n_rows);
    free(rows);
    return ok;
}

static void free_line(char **line)
{
    for (char **word = line; word && *word; word++)
        free(*word);
    free(line);
}

/* The command line as typed, but with the class map itself: its file may change before the tasks
 * run. NULL-terminated; free with free_line; NULL: no memory. */
static char **line_for_tasks(const struct app *app, const char *typed_map,
                             const struct class_map *map)
{
    static const char joined[] = "--class-map=";
    const size_t start = strlen(joined);
    char **line = calloc((size_t)app->argc + 1, sizeof *line);
    for (int i = 0; line && i < app->argc; i++) {
        const char *word = app->argv[i];
        bool whole = word == typed_map;
        bool part = typed_map && strncmp(word, joined, start) == 0 && word + start == typed_map;
        line[i] = whole || part ? text_format("%s%s", part ? joined : "", class_map_text(map))
                                : strdup(word);
        if (!line[i]) {
            free_line(line);
            line = NULL;
        }
    }
    return line;
}

static bool submit(struct app *app, const struct extract_args *given,
                   const struct extract_request *request, struct err *err)
{
    char **line = line_for_tasks(app, given->class_map, request->options.class_map);
    struct task_request tasks = { .kind = &extract_tasks,
                                  .folder = given->output,
                                  .argc = app->argc,
                                  .argv = line,
                                  .slides = request->slides,
                                  .request = request,
                                  .options = &given->cluster };
    bool ok =
        line ? cluster_submit(&tasks, &app->ctx, app->out, err) : err_memory(err, "the task list");
    free_line(line);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct extract_args *given = options;
    struct slide_list slides = { 0 };
    struct class_map *class_map = NULL;
    struct extract_request request = { .slides = &slides,
                                       .folder = given->output,
                                       .overwrite = given->overwrite,
                                       .preview = given->preview,
                                       .argc = app->argc,
                                       .argv = app->argv };
    bool ok = check_modes(given, err) && cluster_check(&given->cluster, err) &&
              make_options(given, &request.options, &class_map, err) &&
              slide_list_read(operands->operands, operands->n_operands, &slides, err) &&
              slide_list_label_by(&slides, given->label_column, err);
    if (ok && given->cluster.on > 0)
        ok = submit(app, given, &request, err);
    else if (ok)
        ok = run_here(app, given, &request, err);
    slide_list_free(&slides);
    class_map_free(class_map);
    return ok;
}

const struct command cmd_extract = {
    .spec = { .name = "extract",
              .summary = "cut patches into HDF5 stores",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1000000,
              .description = "Finds the tissue on each slide and stores patches of it with their "
                             "positions and labels, one HDF5 file per slide: a dense grid with a "
                             "margin, for heatmaps, or "
                             "random patches of each class, for training. " SLIDES_ARE
                             " Slides that cannot be read "
                             "are recorded in slides.csv and skipped; existing stores are kept. "
                             "The same options give the same bytes for any number of threads.",
              .example =
                  "microtome extract slides.csv -o patches --dense --patch 224 --margin 112\n"
                  "microtome extract slides.csv -o train --random 500 --patch 256 --seed 1 "
                  "--stain macenko",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct extract_args),
    .run = run,
};
