/* dataset_texts.c: tables of texts or recordings -> samples, each of which is a row with its text,
 * or the name of its file, and its label (dataset.h); and the tokenizer that all texts share. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/names.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/utf8.h"
#include "text/learn.h"
#include "train/dataset_origin.h"

#define MOST_TOKENIZER_BYTES ((size_t)256 << 20)
#define LEARNT_FILE "vocab.txt"

/* --- tables --- */

/* Which columns of a table are what; -1: it has none. */
struct text_columns {
    int text, label, patient;
};

static bool find_column(const struct csv *csv, const char *key, const char *name, int *out,
                        struct err *err)
{
    *out = csv_column(csv, name);
    if (*out >= 0)
        return true;
    const char *nearest = names_nearest(name, (const char *const *)csv->names, csv->n_columns);
    char list[300];
    return err_set(err, ERR_USAGE, "%s: no column '%s' (%s); it has %s%s%s%s", csv->path, name, key,
                   names_join((const char *const *)csv->names, csv->n_columns, list, sizeof list),
                   nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* Where labels are not learnt from, no column needs to have them. */
static bool find_label(const struct train_config *config, const struct csv *csv, int *out,
                       struct err *err)
{
    *out = -1;
    return config->truth != TRUTH_LABELS ||
           find_column(csv, "data.label", config->data.label, out, err);
}

/* Without data.patient_column, a column "patient" is used where there is one. */
static bool find_columns(const struct train_config *config, const struct csv *csv,
                         struct text_columns *out, struct err *err)
{
    const char *patient = config->data.patient_column;
    out->patient = csv_column(csv, "patient");
    bool heard = config_recordings(config);
    return find_column(csv, heard ? "data.audio" : "data.text",
                       heard ? config->data.audio : config->data.text, &out->text, err) &&
           find_label(config, csv, &out->label, err) &&
           (!patient[0] || find_column(csv, "data.patient_column", patient, &out->patient, err));
}

static int32_t class_of(const struct train_config *config, const char *label)
{
    for (size_t i = 0; i < config->classes.n; i++)
        if (strcmp(config->classes.items[i], label) == 0)
            return (int32_t)i;
    return -1;
}

bool text_check(const struct csv *csv, size_t row, int column, struct err *err)
{
    const char *text = csv_cell(csv, row, column), *at = text;
    if (!text[strspn(text, " \t\r\n")])
        return err_set(err, ERR_FORMAT,
                       "%s:%d: the text in the column '%s' is empty; fill it in, or remove the row",
                       csv->path, csv->lines[row], csv->names[column]);
    for (uint32_t code; *at;) {
        int n = utf8_length((const unsigned char *)at, &code);
        if (n == 0)
            return err_set(err, ERR_FORMAT,
                           "%s:%d: the text in the column '%s' is not UTF-8 at its byte %zu; "
                           "convert the file, e.g. with iconv",
                           csv->path, csv->lines[row], csv->names[column], (size_t)(at - text));
        at += n;
    }
    return true;
}

static bool add_row(struct listing *listing, const struct csv *csv, size_t row,
                    const struct text_columns *columns, struct err *err)
{
    const struct train_config *config = listing->config;
    const char *label = csv_cell(csv, row, columns->label);
    char list[300], *alone = NULL;
    struct new_sample new = { .origin = listing->dataset->n_origins - 1,
                              .item = (int64_t)row,
                              .label = columns->label < 0 ? 0 : class_of(config, label),
                              .side = listing->side };
    if (!text_check(csv, row, columns->text, err))
        return false;
    if (new.label < 0)
        return err_set(err, ERR_FORMAT,
                       "%s:%d: '%s' in the column '%s' is not one of the classes %s; add it to "
                       "classes, or remove the row",
                       csv->path, csv->lines[row], label, config->data.label,
                       names_join((const char *const *)config->classes.items, config->classes.n,
                                  list, sizeof list));
    const char *patient = csv_cell(csv, row, columns->patient);
    if (columns->patient >= 0 && !patient[0])
        return err_set(err, ERR_FORMAT, "%s:%d: the patient in the column '%s' is empty", csv->path,
                       csv->lines[row], csv->names[columns->patient]);
    if (columns->patient < 0 && !(alone = text_format("%s:%d", csv->path, csv->lines[row])))
        return err_memory(err, "the data set");
    new.patient = dataset_add_patient(listing->dataset, alone ? alone : patient);
    free(alone);
    return new.patient >= 0 ? dataset_add_sample(listing->dataset, &new, err)
                            : err_memory(err, "the data set");
}

bool origin_add_texts(struct listing *listing, const char *path, struct err *err)
{
    struct text_columns columns;
    struct origin *origin = origin_new(listing->dataset, ORIGIN_TEXTS, path, err);
    if (!origin || !csv_read(path, &origin->table, err) ||
        !find_columns(listing->config, &origin->table, &columns, err))
        return false;
    origin->text_column = columns.text;
    for (size_t i = 0; i < origin->table.n_rows; i++)
        if (!add_row(listing, &origin->table, i, &columns, err))
            return false;
    return true;
}

const char *dataset_text(const struct dataset *dataset, int64_t sample)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    return csv_cell(&origin->table, (size_t)dataset_item(dataset, sample), origin->text_column);
}

/* --- classes --- */

bool config_text_labels(const struct train_config *config, struct texts *found, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < config->data.train.n; i++) {
        struct csv csv = { 0 };
        struct text_columns columns;
        ok = csv_read(config->data.train.items[i], &csv, err) &&
             find_columns(config, &csv, &columns, err);
        for (size_t row = 0; ok && row < csv.n_rows; row++)
            ok = texts_note(found, csv_cell(&csv, row, columns.label), err);
        csv_free(&csv);
    }
    return ok;
}

/* --- the tokenizer --- */

void dataset_free_texts(struct dataset *dataset)
{
    struct dataset_texts *texts = dataset->texts;
    if (!texts)
        return;
    tokenizer_free(texts->tokenizer);
    free(texts->file);
    free(texts->bytes);
    free(texts);
    dataset->texts = NULL;
}

/* A vocabulary of the training side. */
static bool learn(const struct dataset *dataset, int64_t size, struct dataset_texts *out,
                  struct err *err)
{
    struct learner *learner = NULL;
    bool ok = learner_new(&learner, err);
    for (int64_t i = 0; ok && i < dataset->n_samples; i++)
        if (dataset_side(dataset, i) == DATA_TRAIN)
            ok = learner_add(learner, dataset_text(dataset, i), err);
    ok = ok && (learner_vocabulary(learner, size, &out->bytes, err) ||
                err_prefix(err, "data.vocabulary"));
    learner_free(learner);
    if (!ok)
        return false;
    out->size = strlen(out->bytes);
    return (out->file = strdup(LEARNT_FILE)) || err_memory(err, "the tokenizer");
}

static bool read_file(const char *path, struct dataset_texts *out, struct err *err)
{
    bool json = strcmp(file_extension(path), ".json") == 0;
    return file_read(path, MOST_TOKENIZER_BYTES, &out->bytes, &out->size, err) &&
           ((out->file = strdup(json ? "tokenizer.json" : LEARNT_FILE)) ||
            err_memory(err, "the tokenizer"));
}

bool dataset_open_texts(struct dataset *dataset, const struct train_config *config, struct err *err)
{
    struct dataset_texts *texts = dataset->texts = calloc(1, sizeof *texts);
    const char *given = config->data.tokenizer;
    struct tokenizer_options options = { .keep_case = config->data.keep_case,
                                         .keep_accents = config->data.keep_case };
    if (!texts)
        return err_memory(err, "the tokenizer");
    if (!(given[0] ? read_file(given, texts, err)
                   : learn(dataset, config->data.vocabulary, texts, err)) ||
        !tokenizer_parse(texts->bytes, texts->size, given[0] ? given : texts->file, &options,
                         &texts->tokenizer, err))
        return false;
    texts->sequence = (struct sequence){
        texts->tokenizer, config->data.max_tokens, (enum sequence_rule)config->data.long_rule,
        config->data.long_rule == SEQUENCE_WINDOWS ? config->data.window_overlap : 0
    };
    return sequence_check(&texts->sequence, err) || err_prefix(err, "data.max_tokens");
}

bool dataset_read_text(const struct dataset *dataset, int64_t sample, float *ids, float *mask,
                       struct err *err)
{
    return sequence_fill(&dataset->texts->sequence, dataset_text(dataset, sample), ids, mask, err);
}

bool dataset_draw_text(const struct dataset *dataset, int64_t sample, struct augment_key key,
                       float *ids, float *mask, struct err *err)
{
    const struct sequence *sequence = &dataset->texts->sequence;
    struct rng rng = rng_new(key.seed ^ rng_hash("window of a text"), key.epoch, key.sample);
    struct token_ids body = { 0 };
    bool ok =
        tokenizer_encode(sequence->tokenizer, dataset_text(dataset, sample), false, &body, err);
    uint64_t count = (uint64_t)sequence_count(sequence, body.n);
    ok = ok && sequence_fill_ids(sequence, &body, (int64_t)rng_below(&rng, count), ids, mask, err);
    token_ids_free(&body);
    return ok;
}
