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
#include "text/learn.h"
#include "text/sequence.h"
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

/* By hand: of "ab" twice and "abc" and "b" once, the pair a ##b occurs three times, then ab ##c
 * would be next, but it occurs once. */
static void a_vocabulary_is_learnt(void **state)
{
    (void)state;
    struct learner *learner = NULL;
    char *text = NULL;
    struct err err = { 0 };
    assert_true(learner_new(&learner, &err));
    assert_true(learner_add(learner, "Ab  \u00e2b,\nabc b", &err));
    assert_false(learner_add(learner, "x\xff", &err));
    assert_string_equal(err.text, "not UTF-8 at byte 1; convert it, e.g. with iconv");
    assert_true(learner_vocabulary(learner, 100, &text, &err));
    assert_string_equal(text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n,\n##c\nb\nab\n");
    free(text);
    text = NULL;
    assert_false(learner_vocabulary(learner, 9, &text, &err));
    assert_null(text);
    assert_true(learner_vocabulary(learner, 10, &text, &err)); /* no room for ab */
    assert_null(strstr(text, "\nab\n"));
    free(text);
    learner_free(learner);
}

/* What is learnt from texts makes up all of them, in fewer tokens than characters. */
static void a_learnt_vocabulary_knows_its_texts(void **state)
{
    (void)state;
    char path[1024], *text = NULL;
    struct learner *learner = NULL;
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    json_t *all = json_file_read(golden("ids.json", path), 1 << 24, &err);
    json_t *texts = json_object_get(all, "texts");
    assert_true(learner_new(&learner, &err));
    for (size_t i = 0; i < 18; i++) /* each three times */
        assert_true(learner_add(learner, json_string_value(json_array_get(texts, i % 6)), &err));
    assert_true(learner_vocabulary(learner, 300, &text, &err));
    assert_true(tokenizer_parse(text, strlen(text), "vocab.txt", NULL, &tokenizer, &err));
    assert_true(tokenizer_size(tokenizer) <= 300);
    for (size_t i = 0; i < 6; i++) {
        const char *one = json_string_value(json_array_get(texts, i));
        struct token_ids ids = { 0 };
        assert_true(tokenizer_encode(tokenizer, one, false, &ids, &err));
        assert_true(ids.n > 0 && 2 * ids.n < (int64_t)strlen(one));
        for (int64_t k = 0; k < ids.n; k++)
            assert_int_not_equal(ids.ids[k], tokenizer_id(tokenizer, "[UNK]"));
        token_ids_free(&ids);
    }
    tokenizer_free(tokenizer);
    learner_free(learner);
    free(text);
    json_decref(all);
}

static void check_sequence(const struct sequence *s, const char *text, const float *want)
{
    float ids[8], mask[8];
    struct err err = { 0 };
    if (!sequence_fill(s, text, ids, mask, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < s->tokens; i++) {
        assert_true(ids[i] == (want[i] < 0 ? 0 : want[i]));
        assert_true(mask[i] == (want[i] >= 0));
    }
}

/* Ids are the lines: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, a 4, b 5, .. */
static void texts_become_sequences(void **state)
{
    (void)state;
    static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\nf\n";
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    float ids[8], mask[8];
    assert_true(tokenizer_parse(lines, strlen(lines), "vocab.txt", NULL, &tokenizer, &err));
    struct sequence s = { .tokenizer = tokenizer, .tokens = 6 };
    check_sequence(&s, "b ?", (const float[]){ 2, 5, 1, 3, -1, -1 });
    check_sequence(&s, "a b c d", (const float[]){ 2, 4, 5, 6, 7, 3 });
    check_sequence(&s, "a b c d e f", (const float[]){ 2, 4, 5, 6, 7, 3 });
    s.rule = SEQUENCE_HEAD_TAIL;
    check_sequence(&s, "a b c d", (const float[]){ 2, 4, 5, 6, 7, 3 });
    check_sequence(&s, "a b c d e f", (const float[]){ 2, 4, 5, 8, 9, 3 });
    s.tokens = 7; /* of five places the beginning has three */
    check_sequence(&s, "a b c d e f", (const float[]){ 2, 4, 5, 6, 8, 9, 3 });
    s.rule = SEQUENCE_REFUSE;
    assert_false(sequence_fill(&s, "a b c d e f", ids, mask, &err));
    assert_non_null(strstr(err.text, "has 6 tokens, more than the 5 that fit"));
    assert_false(sequence_fill(&s, " \n", ids, mask, &err));
    assert_non_null(strstr(err.text, "no token"));
    s.tokens = 2;
    assert_false(sequence_check(&s, &err));
    tokenizer_free(tokenizer);
}

/* Window w of the first n letters has these; a short text is as truncated. */
static void check_window(const struct sequence *s, int n, int64_t w, const char *letters)
{
    float ids[8], mask[8];
    struct err err = { 0 };
    struct token_ids body = { (int32_t[]){ 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 }, n, 10 };
    int64_t count = (int64_t)strlen(letters);
    assert_true(sequence_fill_ids(s, &body, w, ids, mask, &err));
    assert_true(ids[0] == 2 && ids[count + 1] == 3);
    for (int64_t i = 0; i < s->tokens; i++) {
        bool inside = i > 0 && i <= count;
        assert_true(mask[i] == (i < count + 2));
        assert_int_equal(sequence_source(s, n, w, i), inside ? letters[i - 1] - 'a' : -1);
        assert_true(!inside || (int)ids[i] == letters[i - 1] - 'a' + 4);
    }
}

/* Of eight places six are for the text; half of them are shared: 0, 3, .., the last at its end. */
static void long_texts_become_windows(void **state)
{
    (void)state;
    static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    assert_true(tokenizer_parse(lines, strlen(lines), "vocab.txt", NULL, &tokenizer, &err));
    struct sequence s = { tokenizer, 8, SEQUENCE_WINDOWS, 0.5 };
    assert_int_equal(sequence_count(&s, 1), 1);
    assert_int_equal(sequence_count(&s, 6), 1);
    assert_int_equal(sequence_count(&s, 7), 2);
    assert_int_equal(sequence_count(&s, 9), 2);
    assert_int_equal(sequence_count(&s, 10), 3);
    check_window(&s, 4, 0, "abcd");
    check_window(&s, 6, 0, "abcdef");
    check_window(&s, 7, 0, "abcdef");
    check_window(&s, 7, 1, "bcdefg");
    check_window(&s, 10, 1, "defghi");
    check_window(&s, 10, 2, "efghij");
    check_sequence(&s, "a b c d e f g h", (const float[]){ 2, 4, 5, 6, 7, 8, 9, 3 });
    s.overlap = 0;
    assert_int_equal(sequence_count(&s, 12), 2);
    assert_int_equal(sequence_count(&s, 13), 3);
    s.overlap = 0.99; /* windows move by a token at least */
    assert_int_equal(sequence_count(&s, 10), 5);
    s.rule = SEQUENCE_HEAD_TAIL;
    assert_int_equal(sequence_count(&s, 10), 1);
    check_window(&s, 10, 0, "abchij");
    tokenizer_free(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wordpiece_gives_the_ids_of_hugging_face),
        cmocka_unit_test(bpe_gives_the_ids_of_hugging_face),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(a_vocabulary_is_learnt),
        cmocka_unit_test(a_learnt_vocabulary_knows_its_texts),
        cmocka_unit_test(texts_become_sequences),
        cmocka_unit_test(long_texts_become_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
