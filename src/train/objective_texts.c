/* objective_texts.c: see objective_texts.h. */
#include "train/objective_texts.h"
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"

bool texts_check_start(const struct learning *learning, struct err *err)
{
    const struct dataset_texts *texts = learning->dataset->texts;
    const char *weights = learning->config->network.weights, *slash = strrchr(weights, '/');
    char *bytes = NULL, *path = text_format("%.*s%s", slash ? (int)(slash + 1 - weights) : 0,
                                            weights, texts->file);
    size_t size = 0;
    bool ok = path || err_memory(err, "the tokenizer");
    if (ok && weights[0] && file_exists(path)) {
        ok = file_read(path, (size_t)1 << 30, &bytes, &size, err);
        if (ok && (size != texts->size || memcmp(bytes, texts->bytes, size) != 0))
            ok = err_set(err, ERR_USAGE,
                         "network.weights: %s has another vocabulary than this training; set "
                         "data.tokenizer: %s",
                         weights, path);
    }
    free(bytes);
    free(path);
    return ok;
}

bool texts_accompany(const struct learning *learning, const char *folder, struct err *err)
{
    const struct dataset_texts *texts = learning->dataset->texts;
    char *path = text_format("%s/%s", folder, texts->file);
    struct file_out out;
    bool ok = (path || err_memory(err, "the tokenizer")) && file_out_open(&out, path, err);
    if (ok) {
        fwrite(texts->bytes, 1, texts->size, out.stream);
        ok = file_out_commit(&out, err);
    }
    free(path);
    return ok;
}
