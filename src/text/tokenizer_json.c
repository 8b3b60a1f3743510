/* tokenizer_json.c: Hugging Face's tokenizer.json of byte-level BPE -> a tokenizer. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

static bool is_type(const json_t *of, const char *name)
{
    const char *type = json_string_value(json_object_get(of, "type"));
    return type && strcmp(type, name) == 0;
}

static bool is_id(const json_t *value)
{
    json_int_t id = json_integer_value(value);
    return json_is_integer(value) && id >= 0 && id < VOCABULARY_MOST;
}

static bool read_vocabulary(const json_t *model, struct tokenizer *t, struct err *err)
{
    const char *token;
    json_t *id;
    json_object_foreach(json_object_get(model, "vocab"), token, id)
    {
        if (!is_id(id))
            return err_set(err, ERR_FORMAT, "model.vocab: '%.60s' has no id below %d", token,
                           VOCABULARY_MOST);
        if (!vocabulary_add(&t->vocabulary, token, (int32_t)json_integer_value(id), err))
            return false;
    }
    for (int byte = 0; byte < 256; byte++) {
        char text[4];
        size_t size = unicode_put(bpe_character(byte), text);
        t->byte_ids[byte] = vocabulary_find(&t->vocabulary, text, size);
    }
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    t->unknown = unknown ? vocabulary_find(&t->vocabulary, unknown, strlen(unknown)) : -1;
    return true;
}

/* A merge is "a b" or ["a", "b"]. */
static bool read_merge(struct tokenizer *t, const json_t *item, size_t rank, struct err *err)
{
    const char *text = json_string_value(item), *space = text ? strchr(text, ' ') : NULL;
    const char *left = space ? text : json_string_value(json_array_get(item, 0));
    const char *right = space ? space + 1 : json_string_value(json_array_get(item, 1));
    if (!left || !right)
        return err_set(err, ERR_FORMAT, "model.merges: number %zu is not two tokens", rank);
    size_t a = space ? (size_t)(space - text) : strlen(left), b = strlen(right);
    char *both = malloc(a + b + 1);
    if (!both)
        return err_memory(err, "merges");
    memcpy(both, left, a);
    memcpy(both + a, right, b + 1);
    struct merge merge = { vocabulary_find(&t->vocabulary, left, a),
                           vocabulary_find(&t->vocabulary, right, b), (int32_t)rank,
                           vocabulary_find(&t->vocabulary, both, a + b) };
    free(both);
    if (merge.left < 0 || merge.right < 0 || merge.id < 0)
        return err_set(err, ERR_FORMAT, "model.merges: number %zu is not in model.vocab", rank);
    *(struct merge *)bpe_find(t, merge.left, merge.right) = merge;
    return true;
}

static bool read_merges(const json_t *model, struct tokenizer *t, struct err *err)
{
    const json_t *merges = json_object_get(model, "merges");
    size_t n = json_array_size(merges);
    t->n_slots = 2 * (int64_t)n + 1;
    t->merges = malloc((size_t)t->n_slots * sizeof *t->merges);
    if (!t->merges)
        return err_memory(err, "merges");
    for (int64_t i = 0; i < t->n_slots; i++)
        t->merges[i].id = -1;
    for (size_t i = 0; i < n; i++)
        if (!read_merge(t, json_array_get(merges, i), i, err))
            return false;
    return true;
}

static bool read_added(const json_t *root, struct tokenizer *t, struct err *err)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(root, "added_tokens"), i, item)
    {
        json_int_t id = json_integer_value(json_object_get(item, "id"));
        const char *text = json_string_value(json_object_get(item, "content"));
        struct added_token token = {
            .text = (char *)text,
            .id = (int32_t)id,
            .word = json_is_true(json_object_get(item, "single_word")),
            .left = json_is_true(json_object_get(item, "lstrip")),
            .right = json_is_true(json_object_get(item, "rstrip")),
            .late = json_is_true(json_object_get(item, "normalized")),
        };
        if (!text || id < 0 || id >= VOCABULARY_MOST)
            return err_set(err, ERR_FORMAT, "added_tokens: number %zu has no content or id", i);
        if (!added_put(t, &token, err))
            return false;
    }
    return true;
}

/* [name, id] of a RobertaProcessing or BertProcessing. */
static bool read_frame(const json_t *root, struct tokenizer *t, struct err *err)
{
    const json_t *post = json_object_get(root, "post_processor");
    if (!post || json_is_null(post) || is_type(post, "ByteLevel"))
        return true;
    const json_t *front = json_array_get(json_object_get(post, "cls"), 1);
    const json_t *back = json_array_get(json_object_get(post, "sep"), 1);
    if (!is_type(post, "RobertaProcessing") && !is_type(post, "BertProcessing"))
        return err_set(err, ERR_FORMAT,
                       "post_processor: only ByteLevel, RobertaProcessing and BertProcessing are "
                       "known");
    if (!is_id(front) || !is_id(back))
        return err_set(err, ERR_FORMAT, "post_processor: cls or sep has no id");
    t->front[t->n_front++] = (int32_t)json_integer_value(front);
    t->back[t->n_back++] = (int32_t)json_integer_value(back);
    return true;
}

static bool check_kind(const json_t *root, const json_t *model, struct err *err)
{
    const json_t *normalizer = json_object_get(root, "normalizer");
    const json_t *cutter = json_object_get(root, "pre_tokenizer");
    if (!is_type(model, "BPE"))
        return err_set(err, ERR_FORMAT,
                       "model.type: only BPE is known; of WordPiece give the "
                       "vocab.txt");
    if (normalizer && !json_is_null(normalizer))
        return err_set(err, ERR_FORMAT, "normalizer: none is known for BPE");
    if (!is_type(cutter, "ByteLevel") || json_is_false(json_object_get(cutter, "use_regex")))
        return err_set(err, ERR_FORMAT,
                       "pre_tokenizer: only ByteLevel with its own pattern is "
                       "known");
    if (json_is_true(json_object_get(model, "ignore_merges")) ||
        json_is_true(json_object_get(model, "byte_fallback")))
        return err_set(err, ERR_FORMAT, "model: ignore_merges and byte_fallback are not known");
    return true;
}

bool tokenizer_parse_json(const char *text, size_t size, struct tokenizer *t, struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, size, 0, &why);
    if (!root)
        return err_set(err, ERR_FORMAT, "line %d is not JSON: %s", why.line, why.text);
    const json_t *model = json_object_get(root, "model");
    t->bpe = true;
    t->prefix_space =
        json_is_true(json_object_get(json_object_get(root, "pre_tokenizer"), "add_prefix_space"));
    bool ok = check_kind(root, model, err) && read_vocabulary(model, t, err) &&
              read_merges(model, t, err) && read_added(root, t, err) && read_frame(root, t, err);
    json_decref(root);
    return ok;
}
