/* trainer_hold_out.c: privacy.hold_out (trainer.h): patches or patients that are kept out of the
 * training, by a draw of the kernel, so that an audit has members and non-members of the same
 * kind. The draw is in hold_out.seed: a training that goes on has the same ones. */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "privacy/poisson.h"
#include "train/dataset_origin.h"
#include "train/trainer.h"
#include "train/private_units.h"

#define SEED_FILE "hold_out.seed"

/* --- the draw --- */

static bool parse_seed(const char *path, const char *text, struct secret *out, struct err *err)
{
    bool ok = strlen(text) >= 2 * SECRET_BYTES;
    for (int i = 0; ok && i < SECRET_BYTES; i++) {
        unsigned byte = 0;
        ok = sscanf(text + 2 * i, "%2x", &byte) == 1;
        out->key[i] = (uint8_t)byte;
    }
    return ok ||
           err_set(err, ERR_FORMAT, "%s: not the draw of a training; use another folder", path);
}

/* That of the folder if a training may go on there, else a new one. */
static bool find_seed(struct trainer *trainer, struct err *err)
{
    char *path = trainer_path(trainer, SEED_FILE), *text = NULL;
    size_t size = 0;
    bool ok = path || err_memory(err, "the hold-out");
    if (ok && trainer->request->resume && file_exists(path))
        ok = file_read(path, 4096, &text, &size, err) &&
             parse_seed(path, text, &trainer->hold_out, err);
    else
        ok = ok && secret_draw(&trainer->hold_out, err);
    free(path);
    free(text);
    return ok;
}

static bool write_seed(const struct trainer *trainer, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, trainer->request->folder, SEED_FILE, err))
        return false;
    for (int i = 0; i < SECRET_BYTES; i++)
        fprintf(out.stream, "%02x", trainer->hold_out.key[i]);
    fputc('\n', out.stream);
    return file_out_commit(&out, err);
}

/* --- sides --- */

/* held [n_samples]: which samples are kept out. */
static bool mark(const struct trainer *trainer, bool *held, int64_t *n_held, struct err *err)
{
    const struct train_config *config = trainer->config;
    struct private_units units = { 0 };
    struct order_item item;
    if (!private_units_new(&trainer->dataset, (enum privacy_unit)config->privacy.unit, &units, err))
        return false;
    int64_t *drawn = calloc((size_t)units.n + 1, sizeof *drawn);
    bool ok = drawn || err_memory(err, "the hold-out");
    *n_held = ok ? poisson_draw(&trainer->hold_out, CIPHER_HOLD_OUT, 0, config->privacy.hold_out,
                                units.n, drawn)
                 : 0;
    for (int64_t i = 0; i < *n_held; i++) {
        if (units.kind == UNIT_PATCH) {
            private_units_items(&units, drawn[i], 0, 0, 1, &item);
            held[item.sample] = true;
            continue;
        }
        for (int64_t k = units.begin[drawn[i]]; k < units.begin[drawn[i] + 1]; k++)
            held[units.samples[k]] = true;
    }
    if (ok && (*n_held == 0 || *n_held == units.n))
        ok = err_set(err, ERR_USAGE,
                     "privacy.hold_out: of %lld units %s kept out; there are too few for it",
                     (long long)units.n, *n_held ? "all were" : "none was");
    free(drawn);
    private_units_free(&units);
    return ok;
}

static void say(const struct trainer *trainer, int64_t held)
{
    if (trainer_leads(trainer))
        console_note(
            trainer->ctx->console, "privacy.hold_out: %lld %s%s kept out of training (others.csv)",
            (long long)held, trainer->config->privacy.unit == UNIT_PATCH ? "patches" : "patients",
            held == 1 ? " is" : " are");
}

bool trainer_hold_out(struct trainer *trainer, struct err *err)
{
    struct dataset *dataset = &trainer->dataset;
    if (trainer->config->privacy.hold_out <= 0)
        return true;
    int64_t n = 0;
    bool *held = calloc((size_t)dataset->n_samples + 1, sizeof *held);
    bool ok = held || err_memory(err, "the hold-out");
    ok = ok && (!trainer_leads(trainer) || find_seed(trainer, err));
    ok = trainer_agree(trainer, ok, err) &&
         ranks_broadcast(trainer->request->ranks, trainer->hold_out.key, SECRET_BYTES, 0, err) &&
         mark(trainer, held, &n, err) && dataset_keep_out(dataset, held, err);
    free(held);
    if (ok)
        say(trainer, n);
    return ok;
}

/* --- the lists --- */

static bool write_list(const struct trainer *trainer, const char *name, enum data_side side,
                       struct err *err)
{
    const struct dataset *dataset = &trainer->dataset;
    struct file_out out;
    struct sample_range range;
    if (!file_out_open_in(&out, trainer->request->folder, name, err))
        return false;
    fputs("sample,patient,file,item,label\n", out.stream);
    for (int64_t at = 0; at < dataset->n_samples; at = range.end) {
        range = dataset_range(dataset, at);
        for (int64_t i = at; range.side == side && i < range.end; i++) {
            dataset_put_sample(dataset, i, out.stream);
            fputc(',', out.stream);
            csv_write_cell(out.stream, dataset_origin_path(dataset, i));
            fprintf(out.stream, ",%lld,%d\n", (long long)dataset_item(dataset, i),
                    dataset_label(dataset, i));
        }
    }
    return file_out_commit(&out, err);
}

bool trainer_hold_out_write(const struct trainer *trainer, struct err *err)
{
    return trainer->config->privacy.hold_out <= 0 ||
           (write_seed(trainer, err) && write_list(trainer, "members.csv", DATA_TRAIN, err) &&
            write_list(trainer, "others.csv", DATA_NONE, err));
}
