/* make.c: see make.h. */
#include "synth/make.h"

#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/divide.h"
#include "base/file.h"
#include "base/image.h"
#include "base/json.h"
#include "base/text.h"
#include "patch/store.h"
#include "patch/synthetic.h"

#define GRID_COLUMNS 12
#define GRID_ROWS 8
#define GRID_LEAST_PX 64 /* smaller images are enlarged by a whole factor */
#define GRID_GAP_PX 4
#define GROUP 400 /* patches in a group of the store */
#define BATCH_BYTES ((int64_t)8 << 20)

struct making {
    struct generator *generator;
    const struct make_request *request;
    struct ranks *ranks;
    const struct ctx *ctx;
    struct sampler *sampler;
    int64_t most, image_bytes;
    float *conditions, *made; /* of a block of `most` images: [most, conditions], [most, floats] */
    uint8_t *pixels;          /* [most, side, side, 3] */
    char *provenance;
    struct store_writer *store; /* NULL: PNGs */
    struct patch_list places;
    struct image grid;
    int64_t placed; /* in the store, since it was flushed */
};

/* --- what is made --- */

static int32_t class_of(const struct making *m, int64_t number)
{
    const struct model_config *config = &m->generator->config;
    if (!config->generator.by_class || m->request->class_number >= 0)
        return m->request->class_number;
    return (int32_t)(number % config->num_classes);
}

static int32_t centre_of(const struct making *m, int64_t number)
{
    const struct model_generator *own = &m->generator->config.generator;
    int64_t classes = own->by_class ? m->generator->config.num_classes : 1;
    if (own->n_centres == 0 || m->request->centre >= 0)
        return m->request->centre;
    return (int32_t)(number / classes % own->n_centres);
}

/* The block of images [first, first + n) -> pixels. */
static bool make_block(struct making *m, int64_t first, int64_t n, struct err *err)
{
    struct generator *g = m->generator;
    for (int64_t i = 0; i < n; i++)
        generator_condition(g, class_of(m, first + i), centre_of(m, first + i),
                            m->conditions + i * g->conditions);
    return sampler_run(m->sampler, first, n, m->conditions, m->made, err) &&
           generator_pixels(g, n, m->made, m->pixels, err);
}

/* --- files --- */

/* One line of JSON that says where synthetic patches come from. The caller's. */
static char *provenance_of(const struct making *m)
{
    const struct make_request *r = m->request;
    const struct model_privacy *privacy = &m->generator->config.privacy;
    static const char *const rules[] = { "euler", "heun" };
    char epsilon[120] = "";
    if (privacy->set && privacy->epsilon > 0)
        snprintf(epsilon, sizeof epsilon, ", \"epsilon\": %.4g, \"delta\": %.4g, \"unit\": \"%s\"",
                 privacy->epsilon, privacy->delta, privacy->unit);
    return text_format("{\"model\": \"%s\", \"network\": \"%s\", \"process\": \"%s\", \"seed\": "
                       "%lld, \"sampler\": \"%s\", \"steps\": %lld, \"guidance\": %g%s}",
                       m->generator->hash, m->generator->config.network,
                       model_process_names[m->generator->config.generator.process],
                       (long long)r->sampler.seed, rules[r->sampler.rule],
                       (long long)r->sampler.steps, r->sampler.guidance, epsilon);
}

/* A JSON list of the classes. The caller's. */
static char *class_names_of(const struct model_config *config)
{
    struct json_out json;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return NULL;
    json_out_begin(&json, memory);
    json_out_array_line(&json, NULL);
    for (int64_t i = 0; i < config->num_classes; i++)
        json_out_text(&json, NULL, config->class_names[i]);
    json_out_close_array(&json);
    json_out_end(&json);
    if (fclose(memory) != 0)
        return NULL;
    if (text && size > 0 && text[size - 1] == '\n')
        text[size - 1] = 0;
    return text;
}

static bool list_places(struct making *m, struct err *err)
{
    int64_t side = m->generator->side_px;
    for (int64_t i = 0; i < m->request->n; i++) {
        struct patch patch = {
            .x = i * side, .x_l0 = i * side, .column = -1, .row = -1, .tissue = 1
        };
        int32_t class_number = class_of(m, m->request->first + i);
        patch.label = (int8_t)(class_number < 0 ? PATCH_UNLABELED : class_number);
        if (!patch_list_add(&m->places, &patch, err))
            return false;
    }
    return true;
}

static bool open_store(struct making *m, struct err *err)
{
    const struct generator *g = m->generator;
    const struct make_request *r = m->request;
    char *path = text_format("%s/patches.h5", r->folder);
    char *classes = g->config.generator.by_class ? class_names_of(&g->config) : strdup("");
    bool ok = (path && classes) || err_memory(err, "the store");
    struct store_facts facts = { .program = r->version,
                                 .slide = "synthetic",
                                 .file = "",
                                 .vendor = "",
                                 .patient = "synthetic",
                                 .mode = "random",
                                 .options = m->provenance,
                                 .synthetic = m->provenance,
                                 .class_names = classes,
                                 .patch = g->side_px,
                                 .tile = g->side_px,
                                 .width_l0 = r->n * g->side_px,
                                 .height_l0 = g->side_px,
                                 .level_width = r->n * g->side_px,
                                 .level_height = g->side_px,
                                 .seed = (int64_t)r->sampler.seed,
                                 .mpp = g->mpp,
                                 .mpp_l0 = g->mpp,
                                 .ratio = 1,
                                 .downsample = 1 };
    struct store_request request = { .layout = STORE_BLOCKS,
                                     .facts = &facts,
                                     .target = { NULL, "" },
                                     .patches = &m->places,
                                     .group = GROUP,
                                     .batch_bytes = BATCH_BYTES };
    ok = ok && list_places(m, err) && store_create(path, &request, &m->store, err);
    free(path);
    free(classes);
    return ok;
}

static bool put_in_store(struct making *m, int64_t index, const uint8_t *pixels, struct err *err)
{
    uint8_t *place = store_place(m->store, index);
    if (!place)
        return err_memory(err, "the patches");
    memcpy(place, pixels, (size_t)m->image_bytes);
    if (++m->placed < store_batch_units(m->store) && index + 1 < m->request->n)
        return true;
    m->placed = 0;
    return store_flush(m->store, err);
}

static bool put_in_png(struct making *m, int64_t index, const uint8_t *pixels, struct err *err)
{
    int64_t number = m->request->first + index, side = m->generator->side_px;
    int32_t class_number = class_of(m, number);
    char ending[40] = "";
    if (class_number >= 0)
        snprintf(ending, sizeof ending, "_class%d", class_number);
    char *path = text_format("%s/synthetic_seed%lld_%06lld%s.png", m->request->folder,
                             (long long)m->request->sampler.seed, (long long)number, ending);
    char *note = text_format(SYNTHETIC_NOTE "%s", m->provenance);
    struct image image = {
        .width = side, .height = side, .channels = 3, .px = (uint8_t *)(uintptr_t)pixels
    };
    bool ok = (path && note) || err_memory(err, "a patch");
    ok = ok && image_write_png_noted(path, &image, note, err);
    free(path);
    free(note);
    return ok;
}

/* --- the picture --- */

static int64_t grid_scale(const struct making *m)
{
    return ceil_div(GRID_LEAST_PX, m->generator->side_px);
}

static bool open_grid(struct making *m, struct err *err)
{
    int64_t cell = m->generator->side_px * grid_scale(m) + GRID_GAP_PX, n = m->request->n;
    int64_t columns = n < GRID_COLUMNS ? n : GRID_COLUMNS, rows = ceil_div(n, columns);
    rows = rows < GRID_ROWS ? rows : GRID_ROWS;
    if (!image_new(&m->grid, columns * cell - GRID_GAP_PX, rows * cell - GRID_GAP_PX, 3, err))
        return false;
    memset(m->grid.px, 255, (size_t)(m->grid.width * m->grid.height * 3));
    return true;
}

static void put_in_grid(struct making *m, int64_t index, const uint8_t *pixels)
{
    int64_t side = m->generator->side_px, scale = grid_scale(m);
    int64_t cell = side * scale + GRID_GAP_PX;
    int64_t x0 = index % GRID_COLUMNS * cell, y0 = index / GRID_COLUMNS * cell;
    if (y0 >= m->grid.height)
        return;
    for (int64_t y = 0; y < side * scale; y++)
        for (int64_t x = 0; x < side * scale; x++)
            memcpy(image_at(&m->grid, x0 + x, y0 + y), pixels + 3 * (y / scale * side + x / scale),
                   3);
}

static bool write_grid(const struct making *m, struct err *err)
{
    char *path = text_format("%s/grid.png", m->request->folder);
    char *note = text_format(SYNTHETIC_NOTE "%s", m->provenance);
    bool ok = (path && note) || err_memory(err, "the picture");
    ok = ok && image_write_png_noted(path, &m->grid, note, err);
    free(path);
    free(note);
    return ok;
}

static bool write_list(const struct making *m, struct err *err)
{
    char *path = text_format("%s/samples.json", m->request->folder);
    struct file_out out;
    if (!path)
        return err_memory(err, "samples.json");
    bool ok = file_out_open(&out, path, err);
    if (ok) {
        struct json_out json;
        json_out_begin(&json, out.stream);
        json_out_object(&json, NULL);
        json_out_bool(&json, "synthetic", true);
        json_out_text(&json, "provenance", m->provenance);
        json_out_int(&json, "first", m->request->first);
        json_out_int(&json, "n", m->request->n);
        json_out_int(&json, "patch_px", m->generator->side_px);
        json_out_real(&json, "mpp", m->generator->mpp);
        json_out_close_object(&json);
        json_out_end(&json);
        ok = file_out_commit(&out, err);
    }
    free(path);
    return ok;
}

/* --- the run --- */

static bool leads(const struct making *m)
{
    return m->ranks->rank == 0;
}

/* The block that rank `from` made, on the first rank. */
static bool pass_block(struct making *m, int from, int64_t n, struct err *err)
{
    size_t bytes = (size_t)(n * m->image_bytes);
    if (from == 0)
        return true;
    if (m->ranks->rank == from)
        return ranks_send(m->ranks, 0, m->pixels, bytes, err);
    return !leads(m) || ranks_receive(m->ranks, from, m->pixels, bytes, err);
}

static bool keep_block(struct making *m, int64_t at, int64_t n, struct err *err)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *pixels = m->pixels + i * m->image_bytes;
        if (!(m->store ? put_in_store(m, at + i, pixels, err) : put_in_png(m, at + i, pixels, err)))
            return false;
        put_in_grid(m, at + i, pixels);
    }
    console_advance(m->ctx->console, n);
    return true;
}

/* Images of a block that starts at `at`. */
static int64_t block_images(const struct making *m, int64_t at)
{
    int64_t rest = m->request->n - at;
    return rest < 0 ? 0 : rest < m->most ? rest : m->most;
}

/* In rounds, in which every rank makes a block. */
static bool make_all(struct making *m, struct err *err)
{
    for (int64_t at = 0; at < m->request->n; at += m->most * m->ranks->size) {
        int64_t own = at + m->ranks->rank * m->most, n = block_images(m, own);
        bool ok = n == 0 || make_block(m, m->request->first + own, n, err);
        bool stop = ctx_stopped(m->ctx);
        if (!ranks_agree(m->ranks, ok, &stop, err))
            return false;
        if (stop)
            return err_stopped(err);
        for (int from = 0; from < m->ranks->size; from++) {
            int64_t place = at + from * m->most, images = block_images(m, place);
            if (images > 0 && (!pass_block(m, from, images, err) ||
                               (leads(m) && !keep_block(m, place, images, err))))
                return false;
        }
    }
    return true;
}

static bool open_outputs(struct making *m, struct err *err)
{
    if (!leads(m))
        return true;
    if (!file_make_folder(m->request->folder, err) || !open_grid(m, err))
        return false;
    return m->request->format == MAKE_PNG || open_store(m, err);
}

static bool close_outputs(struct making *m, struct err *err)
{
    struct store_writer *store = m->store;
    m->store = NULL;
    if (!leads(m))
        return true;
    return (!store || store_commit(store, err)) && write_grid(m, err) && write_list(m, err);
}

static bool begin(struct making *m, struct err *err)
{
    const struct generator *g = m->generator;
    struct sampler_options options = m->request->sampler;
    options.process = g->process;
    if (!sampler_new(g->graph, &options, &m->sampler, err))
        return false;
    m->most = sampler_most(m->sampler);
    m->image_bytes = 3 * g->side_px * g->side_px;
    m->conditions = calloc((size_t)(m->most * (g->conditions + 1)), sizeof *m->conditions);
    m->made = calloc((size_t)(m->most * g->floats), sizeof *m->made);
    m->pixels = calloc((size_t)(m->most * m->image_bytes), 1);
    m->provenance = provenance_of(m);
    return (m->conditions && m->made && m->pixels && m->provenance) ||
           err_memory(err, "the patches");
}

bool make_samples(struct generator *generator, const struct make_request *request,
                  struct ranks *ranks, const struct ctx *ctx, struct err *err)
{
    struct making m = { .generator = generator, .request = request, .ranks = ranks, .ctx = ctx };
    bool ok = begin(&m, err) && open_outputs(&m, err);
    ok = ranks_agree(ranks, ok, NULL, err);
    if (ok) {
        if (leads(&m))
            console_begin(ctx->console, "samples", request->n, "patches");
        ok = make_all(&m, err) && close_outputs(&m, err);
        if (leads(&m))
            console_end(ctx->console);
    }
    store_discard(m.store);
    patch_list_free(&m.places);
    image_free(&m.grid);
    sampler_free(m.sampler);
    free(m.conditions);
    free(m.made);
    free(m.pixels);
    free(m.provenance);
    return ok;
}
