/* utf8.c: see utf8.h. */
#include "base/utf8.h"

#include <stdbool.h>

int utf8_length(const unsigned char *at, uint32_t *code)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    int length = at[0] < 0x80 ? 1 : at[0] >= 0xC0 && at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if ((at[0] >= 0x80 && at[0] < 0xC0) || at[0] >= 0xF8)
        return 0;
    *code = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3F);
    }
    bool surrogate = *code >= 0xD800 && *code < 0xE000;
    return *code < least[length] || *code > 0x10FFFF || surrogate ? 0 : length;
}
