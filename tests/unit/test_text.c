/* test_text.c: tokenizers against ids of Hugging Face's (tests/golden/text.py), and bad files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_file.h"
#include "text/tokenizer.h"

static const char *golden(const char *name, char path[1024])
{
    snprintf(path, 1024, "%s/tests/golden/text/%s", getenv("SOURCE"), name);
    return path;
}

/* The ids of all texts with a file of tests/golden/text are those of the key. */
static void compare(const char *file, const struct tokenizer_options *options, const char *key)
{
    char path[1024];
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    json_t *all = json_file_read(golden("ids.json", path), 1 << 24, &err);
    json_t *texts = json_object_get(all, "texts"), *wanted = json_object_get(all, key);
    assert_true(json_array_size(texts) > 10);
    if (!tokenizer_open(golden(file, path), options, &tokenizer, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const char *text = json_string_value(json_array_get(texts, i));
        const json_t *want = json_array_get(wanted, i);
        struct token_ids ids = { 0 };
        assert_true(tokenizer_encode(tokenizer, text, true, &ids, &err));
        bool same = ids.n == (int64_t)json_array_size(want);
        for (int64_t k = 0; same && k < ids.n; k++)
            same = ids.ids[k] == json_integer_value(json_array_get(want, (size_t)k));
        if (!same)
            fail_msg("%s: other ids of '%s': %lld tokens", key, text, (long long)ids.n);
        token_ids_free(&ids);
    }
    tokenizer_free(tokenizer);
    json_decref(all);
}

static void wordpiece_gives_the_ids_of_hugging_face(void **state)
{
    (void)state;
    struct tokenizer_options cased = { .keep_case = true, .keep_accents = true };
    compare("vocab.txt", NULL, "wordpiece");
    compare("vocab.txt", &cased, "cased");
}

static void bpe_gives_the_ids_of_hugging_face(void **state)
{
    (void)state;
    compare("tokenizer.json", NULL, "bpe");
}

static void refuse(const char *text, const char *path, const char *message)
{
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    assert_false(tokenizer_parse(text, strlen(text), path, NULL, &tokenizer, &err));
    assert_string_equal(err.text, message);
}

static void bad_files_are_named(void **state)
{
    (void)state;
    struct token_ids ids = { 0 };
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    static const char small[] = "[UNK]\n[SEP]\n[CLS]\na\n";
    refuse("a\nb\n", "v.txt",
           "v.txt: not a vocabulary of BERT: no line is [UNK]; it has one token a line");
    refuse("{\"model\": {\"type\": \"Unigram\"}}", "t.json",
           "t.json: model.type: only BPE is known; of WordPiece give the vocab.txt");
    assert_true(tokenizer_parse(small, strlen(small), "v.txt", NULL, &tokenizer, &err));
    assert_false(tokenizer_encode(tokenizer, "a\xFF", true, &ids, &err));
    assert_string_equal(err.text, "not UTF-8 at byte 1; convert it, e.g. with iconv");
    token_ids_free(&ids);
    tokenizer_free(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wordpiece_gives_the_ids_of_hugging_face),
        cmocka_unit_test(bpe_gives_the_ids_of_hugging_face),
        cmocka_unit_test(bad_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
