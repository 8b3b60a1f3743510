/* runner_texts.c: see runner_texts.h. */
#include "train/runner_texts.h"
#include <stdlib.h>
#include "base/console.h"

/* Can all texts be read? How many tokens they have, if some are cut. */
bool texts_look(struct trainer *trainer, struct err *err)
{
    const struct dataset *dataset = &trainer->dataset;
    const struct dataset_texts *texts = dataset->texts;
    int64_t longer = 0, longest = 0, n = dataset->n_samples, most = texts->sequence.tokens;
    struct token_ids ids = { 0 };
    float *room = calloc((size_t)(2 * most), sizeof *room);
    bool ok = room || err_memory(err, "texts");
    for (int64_t i = 0; ok && i < n; i++, ids.n = 0) {
        ok = tokenizer_encode(texts->tokenizer, dataset_text(dataset, i), true, &ids, err) &&
             dataset_read_text(dataset, i, room, room + most, err);
        char *name = ok ? NULL : dataset_sample_name(dataset, i);
        if (name)
            err_prefix(err, name);
        free(name);
        longer += ids.n > most;
        longest = ids.n > longest ? ids.n : longest;
    }
    token_ids_free(&ids);
    free(room);
    if (ok && longer > 0 && trainer_leads(trainer))
        console_note(trainer->ctx->console,
                     "%lld of %lld texts have more than %lld tokens, up to %lld (data.long: %s)",
                     (long long)longer, (long long)n, (long long)most, (long long)longest,
                     sequence_rule_names[texts->sequence.rule]);
    return ok;
}

bool texts_describe(struct trainer *trainer, struct err *err)
{
    (void)err;
    const struct train_config *given = trainer->config;
    const struct dataset_texts *texts = trainer->dataset.texts;
    trainer->prepare.text = (struct model_text){ .tokenizer = texts->file,
                                                 .text = given->data.text,
                                                 .label = given->data.label,
                                                 .id = given->data.id,
                                                 .max_tokens = texts->sequence.tokens,
                                                 .rule = (int)texts->sequence.rule,
                                                 .overlap = texts->sequence.overlap,
                                                 .keep_case = given->data.keep_case };
    return true;
}

bool texts_average(const struct trainer *trainer, const struct text_windows *how,
                   const struct batch *batch, float *outputs, struct err *err)
{
    const int64_t *samples = batch_int64(batch, "sample");
    const char **texts = calloc((size_t)batch_rows(batch), sizeof *texts);
    int64_t at = -1;
    bool ok = texts || err_memory(err, "windows of texts");
    for (int64_t i = 0; ok && i < batch->n; i++)
        texts[i] = dataset_text(&trainer->dataset, samples[i]);
    ok = ok && text_windows_run(how, texts, batch->n, outputs, &at, err);
    char *name = ok || at < 0 ? NULL : dataset_sample_name(&trainer->dataset, samples[at]);
    if (name)
        err_prefix(err, name);
    free(name);
    free(texts);
    return ok;
}
