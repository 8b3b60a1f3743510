/* test_text_probe.c: weights of tokens against PyTorch and Hugging Face
 * (tests/golden/text_words.py) and words of texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_file.h"
#include "explain/text_probe.h"
#include "net/zoo/zoo.h"
#include "support/zoo_golden.h"
#include "text/words.h"

enum { TOKENS = 16, CLASSES = 3, STEPS = 60 };

static json_t *golden(const char *name)
{
    char path[1024];
    struct err err = { 0 };
    snprintf(path, sizeof path, "%s/tests/golden/text/%s", getenv("SOURCE"), name);
    json_t *all = json_file_read(path, 1 << 24, &err);
    if (!all)
        fail_msg("%s", err.text);
    return all;
}

/* [PAD] is the first of n tokens. */
static struct tokenizer *some_tokens(int n)
{
    char text[1024] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    struct tokenizer *tokenizer = NULL;
    struct err err = { 0 };
    for (int i = 5; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "t%d\n", i);
    if (!tokenizer_parse(text, strlen(text), "vocab.txt", NULL, &tokenizer, &err))
        fail_msg("%s", err.text);
    return tokenizer;
}

static void read_case(const json_t *from, const char *key, double *out, int n)
{
    const json_t *list = json_object_get(from, key);
    assert_int_equal(json_array_size(list), n);
    for (int i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        out[i] = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    }
}

static void near(const char *what, const double *found, const double *want, int n)
{
    double most = 0, apart = 0;
    for (int i = 0; i < n; i++) {
        most = fmax(most, fabs(want[i]));
        apart = fmax(apart, fabs(found[i] - want[i]));
    }
    if (!(apart <= 1e-4 * most))
        fail_msg("%s: apart by %g of %g", what, apart, most);
}

static void compare(struct text_probe *probe, const json_t *one)
{
    double ids[TOKENS], mask[TOKENS], own[TOKENS], wanted[TOKENS], found[TOKENS], logits[CLASSES];
    float ids_in[TOKENS], mask_in[TOKENS];
    bool own_in[TOKENS];
    struct text_integral integral;
    struct err err = { 0 };
    const char *name = json_string_value(json_object_get(one, "network"));
    int64_t chosen = json_integer_value(json_object_get(one, "class"));
    double baseline = json_number_value(json_object_get(one, "baseline"));
    read_case(one, "ids", ids, TOKENS);
    read_case(one, "mask", mask, TOKENS);
    read_case(one, "own", own, TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        ids_in[i] = (float)ids[i];
        mask_in[i] = (float)mask[i];
        own_in[i] = own[i] > 0;
    }
    assert_true(text_probe_run(probe, ids_in, mask_in, logits, found, &err));
    read_case(one, "attention", wanted, TOKENS);
    near(name, found, wanted, TOKENS);
    read_case(one, "logits", wanted, CLASSES);
    near(name, logits, wanted, CLASSES);
    double logit = wanted[chosen];
    if (!text_probe_integrate(probe, ids_in, mask_in, own_in, chosen, found, &integral, &err))
        fail_msg("%s", err.text);
    read_case(one, "gradients", wanted, TOKENS);
    near(name, found, wanted, TOKENS);
    assert_true(fabs(integral.logit - logit) < 1e-4 * fabs(logit));
    assert_true(fabs(integral.baseline - baseline) < 1e-4 * fabs(logit - baseline));
    if (strncmp(name, "t5", 2) != 0) /* it needs more steps than these */
        assert_true(fabs(integral.sum - (logit - baseline)) < 1e-4 * fabs(logit - baseline));
}

static void weights_are_those_of_pytorch(void **state)
{
    (void)state;
    json_t *all = golden("words.json"), *cases = json_object_get(all, "cases");
    int64_t vocabulary = json_integer_value(json_object_get(all, "vocabulary"));
    assert_true(json_array_size(cases) == 3);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        struct err err = { 0 };
        struct text_probe *probe = NULL;
        struct text_model model = { .config.num_classes = CLASSES,
                                    .config.network = "a network",
                                    .tokenizer = some_tokens((int)vocabulary) };
        struct zoo_options options = { .batch = TEXT_PROBE_BATCH,
                                       .channels = vocabulary,
                                       .height = TOKENS,
                                       .classes = CLASSES,
                                       .depth = json_integer_value(json_object_get(one, "depth")) };
        model.sequence = (struct sequence){ .tokenizer = model.tokenizer, .tokens = TOKENS };
        if (!zoo_build(json_string_value(json_object_get(one, "network")), &options, &model.graph,
                       &err) ||
            !graph_allocate(model.graph, &err))
            fail_msg("%s", err.text);
        zoo_fill_parameters(model.graph, 1, false);
        if (!text_probe_new(&model, STEPS, 1, &probe, &err))
            fail_msg("%s", err.text);
        compare(probe, one);
        text_probe_free(probe);
        graph_free(model.graph);
        tokenizer_free(model.tokenizer);
    }
    json_decref(all);
}

/* Every word has its tokens in order, none is left over, and the bytes are those of the text. */
static void check_words(const struct tokenizer *tokenizer, const char *text, int64_t *count)
{
    struct token_ids ids = { 0 };
    struct text_word *words = NULL;
    struct err err = { 0 };
    int64_t n = 0, first = 0, begin = 0;
    assert_true(tokenizer_encode(tokenizer, text, false, &ids, &err));
    if (!text_words(tokenizer, text, &ids, &words, &n, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(words[i].first, first);
        assert_int_equal(words[i].begin, begin);
        assert_true(words[i].core >= begin && words[i].end > words[i].core);
        first += words[i].n;
        begin = words[i].end;
    }
    assert_true(first == ids.n || n == 0);
    assert_true(text[begin + (int64_t)strspn(text + begin, " \n\t\r")] == 0);
    *count = n;
    free(words);
    token_ids_free(&ids);
}

static void tokens_belong_to_words(void **state)
{
    (void)state;
    static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##cd\n,\n.\n";
    json_t *all = golden("ids.json"), *texts = json_object_get(all, "texts");
    struct tokenizer *small = NULL, *bytes = NULL;
    struct err err = { 0 };
    char path[1024];
    int64_t n;
    snprintf(path, sizeof path, "%s/tests/golden/text/tokenizer.json", getenv("SOURCE"));
    assert_true(tokenizer_parse(lines, strlen(lines), "vocab.txt", NULL, &small, &err));
    assert_true(tokenizer_open(path, NULL, &bytes, &err));
    check_words(small, "  abcd, AB\n\nxy.. \n", &n);
    assert_int_equal(n, 5); /* abcd , AB xy .. */
    check_words(small, "", &n);
    assert_int_equal(n, 0);
    check_words(bytes, "Margins are free, 3.5 mm.", &n);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        check_words(small, json_string_value(json_array_get(texts, i)), &n);
        check_words(bytes, json_string_value(json_array_get(texts, i)), &n);
    }
    tokenizer_free(small);
    tokenizer_free(bytes);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_pytorch),
        cmocka_unit_test(tokens_belong_to_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
