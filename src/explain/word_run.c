/* word_run.c: see word_run.h. */
#include "explain/word_run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/names.h"
#include "base/pool.h"
#include "base/text.h"
#include "explain/word_page.h"
#include "train/dataset_origin.h"
#include "train/score_texts.h"

struct word_session {
    const struct word_request *request;
    struct csv table;
    struct score_columns columns;
    struct text_model model;
    struct text_probe *probe;
    uint32_t methods;
    int64_t class_index;
    struct file_out list, index; /* words.csv, index.html */
    char *pages;                 /* folder */
};

/* --- what is asked for --- */

static bool read_methods(const char *names, uint32_t *out, struct err *err)
{
    *out = names ? 0 : (1u << WORDS_METHODS) - 1;
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t size = strcspn(at, ","), found = WORDS_METHODS;
        for (size_t m = 0; m < WORDS_METHODS; m++)
            if (strlen(word_method_names[m]) == size &&
                strncmp(word_method_names[m], at, size) == 0)
                found = m;
        if (found == WORDS_METHODS)
            return err_set(err, ERR_USAGE,
                           "--method: '%.*s' is not a method for words; use gradients, attention "
                           "or both",
                           (int)size, at);
        *out |= 1u << found;
    }
    return true;
}

static bool read_class(const struct model_config *config, const char *name, int64_t *out,
                       struct err *err)
{
    char list[300];
    *out = -1;
    for (int64_t c = 0; name && c < config->num_classes; c++)
        if (strcmp(config->class_names[c], name) == 0)
            *out = c;
    return !name || *out >= 0 ||
           err_set(err, ERR_USAGE, "--class: '%s' is not a class of the model; it has %s", name,
                   names_join((const char *const *)config->class_names, (size_t)config->num_classes,
                              list, sizeof list));
}

/* --- files --- */

static const char *id_of(const struct word_session *s, size_t row, char number[24])
{
    snprintf(number, 24, "%zu", row + 1);
    return s->columns.id >= 0 ? csv_cell(&s->table, row, s->columns.id) : number;
}

static void put_list_header(const struct word_session *s)
{
    fputs("id,number,word,read", s->list.stream);
    for (int m = 0; m < WORDS_METHODS; m++)
        if (s->methods & 1u << m)
            fprintf(s->list.stream, ",%s", word_method_names[m]);
    fputc('\n', s->list.stream);
}

static bool put_list(const struct word_session *s, const struct word_subject *subject,
                     struct err *err)
{
    const struct word_weights *found = subject->found;
    FILE *stream = s->list.stream;
    for (int64_t i = 0; i < found->n; i++) {
        const struct text_word *word = &found->words[i];
        char *text = strndup(subject->text + word->core, (size_t)(word->end - word->core));
        if (!text)
            return err_memory(err, "words");
        csv_write_cell(stream, subject->id);
        fprintf(stream, ",%lld,", (long long)i + 1);
        csv_write_cell(stream, text);
        fputs(found->unread[i] ? ",no" : ",yes", stream);
        for (int m = 0; m < WORDS_METHODS; m++)
            if (found->weights[m])
                fprintf(stream, ",%.9g", found->weights[m][i]);
        fputc('\n', stream);
        free(text);
    }
    return true;
}

static bool write_page(const struct word_session *s, const struct word_subject *subject,
                       struct err *err)
{
    char name[40];
    struct file_out page;
    snprintf(name, sizeof name, "%lld.html", (long long)subject->number);
    if (!file_out_open_in(&page, s->pages, name, err))
        return false;
    word_page_put(page.stream, &s->model.config, subject);
    return file_out_commit(&page, err);
}

/* --- one text after another --- */

static bool explain_row(struct word_session *s, size_t row, struct word_result *out,
                        struct err *err)
{
    const char *text = csv_cell(&s->table, row, s->columns.sample);
    struct word_weights found = { 0 };
    char number[24], line[32];
    snprintf(line, sizeof line, "line %d", s->table.lines[row]);
    if (!text_check(&s->table, row, s->columns.sample, err))
        return false;
    if (!word_weights_make(s->probe, &s->model, text, s->methods, s->class_index, &found, err)) {
        err_prefix(err, line);
        return err_prefix(err, s->table.path);
    }
    struct word_subject subject = { .number = (int64_t)row + 1,
                                    .id = id_of(s, row, number),
                                    .label = csv_cell(&s->table, row, s->columns.label),
                                    .text = text,
                                    .found = &found };
    bool ok = write_page(s, &subject, err) && put_list(s, &subject, err);
    if (ok)
        word_index_line(s->index.stream, &s->model.config, &subject);
    double between = found.integral.logit - found.integral.baseline;
    out->texts++;
    out->words += found.n;
    out->most_apart = fmax(out->most_apart, fabs(found.integral.sum - between));
    out->most_between = fmax(out->most_between, fabs(between));
    word_weights_free(&found);
    return ok;
}

static bool find_columns(struct word_session *s, struct err *err)
{
    const struct score_names names = score_texts_names(&s->model.config);
    return score_columns_find(&s->table, &names, &s->columns, err);
}

static bool open_session(struct word_session *s, const struct ctx *ctx, struct err *err)
{
    const struct word_request *request = s->request;
    return read_methods(request->methods, &s->methods, err) &&
           csv_read(request->table, &s->table, err) &&
           text_model_open(request->model, TEXT_PROBE_BATCH, &s->model, err) &&
           find_columns(s, err) &&
           read_class(&s->model.config, request->class_name, &s->class_index, err) &&
           text_probe_new(&s->model, request->steps, pool_workers(ctx->pool), &s->probe, err) &&
           ((s->pages = text_format("%s/texts", request->folder)) ||
            err_memory(err, "the pages")) &&
           file_make_folder(request->folder, err) && file_make_folder(s->pages, err) &&
           file_out_open_in(&s->list, request->folder, "words.csv", err) &&
           file_out_open_in(&s->index, request->folder, "index.html", err);
}

static void close_session(struct word_session *s)
{
    file_out_discard(&s->list);
    file_out_discard(&s->index);
    text_probe_free(s->probe);
    text_model_close(&s->model);
    csv_free(&s->table);
    free(s->pages);
}

static bool refuse_results(const struct word_request *request, struct err *err)
{
    char *path = text_format("%s/index.html", request->folder);
    bool ok = path || err_memory(err, "the pages");
    if (ok && file_exists(path) && !request->overwrite)
        ok = err_set(err, ERR_USAGE, "%s: exists; pass --overwrite to replace it", path);
    free(path);
    return ok;
}

bool word_run(const struct word_request *request, const struct ctx *ctx, struct word_result *out,
              struct err *err)
{
    struct word_session s = { .request = request };
    *out = (struct word_result){ 0 };
    bool ok = refuse_results(request, err) && open_session(&s, ctx, err);
    out->integrated = s.methods & 1u << WORDS_GRADIENTS;
    if (ok) {
        put_list_header(&s);
        word_index_begin(s.index.stream, request->model, request->table);
    }
    for (size_t row = 0; ok && row < s.table.n_rows; row++)
        ok = (!ctx_stopped(ctx) || err_set(err, ERR_STOPPED, "stopped")) &&
             explain_row(&s, row, out, err);
    if (ok)
        word_index_end(s.index.stream);
    ok = ok && file_out_commit(&s.list, err) && file_out_commit(&s.index, err);
    close_session(&s);
    return ok;
}
