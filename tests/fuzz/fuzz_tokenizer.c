/* fuzz_tokenizer.c: any bytes as a tokenizer.json or a vocab.txt: refused with a word, or a
 * tokenizer whose ids are within its size. */
#include <stdlib.h>
#include "tests/fuzz/fuzz.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "Invasive ductal carcinoma's 14 mm \xE2\x80\x94 M\xC3\xBCller [SEP] ";
    struct tokenizer *tokenizer = NULL;
    struct err err = { .kind = ERR_NONE };
    const char *name = size > 0 && data[0] == '{' ? "t.json" : "v.txt";
    if (!tokenizer_parse((const char *)data, size, name, NULL, &tokenizer, &err)) {
        if (err.kind == ERR_NONE)
            abort();
        return 0;
    }
    fuzz_taken++;
    struct token_ids ids = { 0 };
    if (!tokenizer_encode(tokenizer, text, false, &ids, &err))
        abort();
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.ids[i] < 0 || ids.ids[i] >= tokenizer_size(tokenizer))
            abort();
    token_ids_free(&ids);
    tokenizer_free(tokenizer);
    return 0;
}
