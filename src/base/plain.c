/* plain.c: see plain.h. Byte by byte, because a stream may receive half a character. */
#include "base/plain.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_OUT 40 /* bytes that one byte may release: four escapes, with their end */

/* The beginning of a character of several bytes. */
struct part {
    unsigned char bytes[4];
    int n, need;
};

struct plain {
    FILE *under;
    struct part part;
};

static size_t escape(char *out, size_t used, uint32_t code)
{
    return used + (size_t)snprintf(out + used, MOST_OUT - used, "\\u%04x", (unsigned)code);
}

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0) ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of a character that begins with this one; 0 if none does. */
static int length_of(unsigned char first)
{
    return first < 0x80                     ? 1
           : first >= 0xC2 && first <= 0xDF ? 2
           : first >= 0xE0 && first <= 0xEF ? 3
           : first >= 0xF0 && first <= 0xF4 ? 4
                                            : 0;
}

/* An incomplete or invalid character. */
static size_t give_up(struct part *part, char out[MOST_OUT], size_t used)
{
    for (int i = 0; i < part->n; i++)
        used = escape(out, used, part->bytes[i]);
    part->n = 0;
    return used;
}

static size_t finish(struct part *part, char out[MOST_OUT], size_t used)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint32_t code = part->need == 1 ? part->bytes[0] : part->bytes[0] & (0x7Fu >> part->need);
    for (int i = 1; i < part->need; i++)
        code = code << 6 | (part->bytes[i] & 0x3Fu);
    bool valid = code >= least[part->need] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    if (!valid)
        return give_up(part, out, used);
    if (is_control(code)) {
        used = escape(out, used, code);
    } else {
        memcpy(out + used, part->bytes, (size_t)part->need);
        used += (size_t)part->need;
    }
    part->n = 0;
    return used;
}

/* Takes one byte; returns how many bytes of `out` it released. */
static size_t take(struct part *part, unsigned char byte, char out[MOST_OUT])
{
    size_t used = 0;
    bool continues = (byte & 0xC0) == 0x80;
    if (part->n > 0 && !continues)
        used = give_up(part, out, used);
    if (part->n == 0)
        part->need = length_of(byte);
    if (part->need == 0)
        return escape(out, used, byte);
    part->bytes[part->n++] = byte;
    return part->n == part->need ? finish(part, out, used) : used;
}

static ssize_t write_plain(void *cookie, const char *bytes, size_t n)
{
    struct plain *plain = cookie;
    char out[MOST_OUT];
    for (size_t i = 0; i < n; i++) {
        size_t used = take(&plain->part, (unsigned char)bytes[i], out);
        if (fwrite(out, 1, used, plain->under) != used)
            return -1;
    }
    return fflush(plain->under) == 0 ? (ssize_t)n : -1;
}

static int close_plain(void *cookie)
{
    struct plain *plain = cookie;
    char out[MOST_OUT];
    size_t used = give_up(&plain->part, out, 0);
    bool ok = fwrite(out, 1, used, plain->under) == used && fflush(plain->under) == 0;
    free(plain);
    return ok ? 0 : EOF;
}

FILE *plain_stream(FILE *under)
{
    struct plain *plain = calloc(1, sizeof *plain);
    if (!plain)
        return NULL;
    plain->under = under;
    FILE *stream = fopencookie(
        plain, "w", (cookie_io_functions_t){ .write = write_plain, .close = close_plain });
    if (!stream)
        free(plain);
    else if (isatty(fileno(under)))
        setvbuf(stream, NULL, _IOLBF, 0);
    return stream;
}

void plain_print(FILE *stream, const char *text)
{
    struct part part = { 0 };
    char out[MOST_OUT];
    for (; *text; text++)
        fwrite(out, 1, take(&part, (unsigned char)*text, out), stream);
    fwrite(out, 1, give_up(&part, out, 0), stream);
}

void plain_copy(char *out, size_t size, const char *text)
{
    struct part part = { 0 };
    size_t used = 0, n = 0;
    char piece[MOST_OUT];
    for (bool more = true; more; used += n) {
        more = *text != 0;
        n = more ? take(&part, (unsigned char)*text++, piece) : give_up(&part, piece, 0);
        if (used + n >= size)
            break;
        memcpy(out + used, piece, n);
    }
    out[used] = 0;
}
