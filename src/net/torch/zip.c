/* zip.c: see zip.h. The format: local header and bytes of every entry, then the central directory,
 * then its end record, with 64-bit forms of the last two for large files. */
#include "net/torch/zip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_BYTES 30
#define CENTRAL_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR_BYTES 20
#define DEFLATE_RATIO 1032

struct reader {
    const uint8_t *bytes;
    size_t size;
    const char *path;
    struct err *err;
};

/* Where the central directory lies, and how many entries it has. */
struct directory {
    uint64_t offset, size, entries;
};

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool bad(const struct reader *r, const char *fact)
{
    return err_set(r->err, ERR_FORMAT, "%s: a damaged zip archive: %s", r->path, fact);
}

static bool is(const uint8_t *at, const char *signature)
{
    return memcmp(at, signature, 4) == 0;
}

/* The 64-bit end record, if the locator before the end record at `end` gives one. */
static bool find_end64(const struct reader *r, size_t end, struct directory *out)
{
    if (end < LOCATOR_BYTES || !is(r->bytes + end - LOCATOR_BYTES, "PK\6\7"))
        return true;
    uint64_t at = number(r->bytes + end - LOCATOR_BYTES + 8, 8);
    if (r->size < END64_BYTES || at > r->size - END64_BYTES || !is(r->bytes + at, "PK\6\6"))
        return bad(r, "its 64-bit end record is not where the file says");
    *out = (struct directory){ .entries = number(r->bytes + at + 32, 8),
                               .size = number(r->bytes + at + 40, 8),
                               .offset = number(r->bytes + at + 48, 8) };
    return true;
}

/* The end record is the last one whose comment ends with the file. */
static bool find_directory(const struct reader *r, struct directory *out)
{
    const size_t farthest = END_BYTES + 65535;
    for (size_t back = END_BYTES; back <= r->size && back <= farthest; back++) {
        const uint8_t *end = r->bytes + r->size - back;
        if (!is(end, "PK\5\6") || number(end + 20, 2) != back - END_BYTES)
            continue;
        *out = (struct directory){ .entries = number(end + 10, 2),
                                   .size = number(end + 12, 4),
                                   .offset = number(end + 16, 4) };
        if (number(end + 4, 2) != number(end + 6, 2))
            return bad(r, "it is spread over several files");
        if (!find_end64(r, r->size - back, out))
            return false;
        if (out->offset > r->size || out->size > r->size - out->offset ||
            out->entries > out->size / CENTRAL_BYTES)
            return bad(r, "its directory is outside the file");
        return true;
    }
    return err_set(r->err, ERR_FORMAT, "%s: truncated: the directory at the end is missing",
                   r->path);
}

/* Sizes of 2^32 - 1 in a header stand for 64-bit ones in its extra field. */
static bool widen(const struct reader *r, const uint8_t *extra, size_t size, uint64_t *unpacked,
                  uint64_t *packed, uint64_t *offset)
{
    uint64_t *const values[] = { unpacked, packed, offset };
    bool needed = false;
    for (int i = 0; i < 3; i++)
        needed = needed || *values[i] == UINT32_MAX;
    for (size_t at = 0; needed && at + 4 <= size;) {
        size_t length = (size_t)number(extra + at + 2, 2);
        const uint8_t *field = extra + at + 4;
        if (length > size - at - 4)
            break;
        if (number(extra + at, 2) != 1) {
            at += 4 + length;
            continue;
        }
        for (int i = 0; i < 3; i++) {
            if (*values[i] != UINT32_MAX)
                continue;
            if (length < 8)
                return bad(r, "a 64-bit size is missing");
            *values[i] = number(field, 8);
            field += 8, length -= 8;
        }
        return true;
    }
    return !needed || bad(r, "a 64-bit size is missing");
}

/* The bytes of an entry, behind its local header, which must have the same name and method. */
static bool locate(const struct reader *r, uint64_t offset, uint64_t packed, uint64_t limit,
                   unsigned method, struct zip_entry *entry)
{
    if (limit < LOCAL_BYTES || offset > limit - LOCAL_BYTES || !is(r->bytes + offset, "PK\3\4"))
        return bad(r, "an entry is not where the directory says");
    const uint8_t *local = r->bytes + offset;
    uint64_t name = number(local + 26, 2), extra = number(local + 28, 2);
    uint64_t left = limit - offset - LOCAL_BYTES;
    if (name + extra > left || packed > left - name - extra)
        return bad(r, "an entry is outside the file");
    if (name != entry->name_length || memcmp(local + LOCAL_BYTES, entry->name, (size_t)name) != 0 ||
        number(local + 8, 2) != method)
        return bad(r, "an entry and the directory disagree");
    entry->bytes = local + LOCAL_BYTES + name + extra;
    return true;
}

/* One entry of the directory at *at. */
static bool read_entry(const struct reader *r, const struct directory *directory, uint64_t *at,
                       struct zip_entry *entry)
{
    uint64_t left = directory->offset + directory->size - *at;
    const uint8_t *central = r->bytes + *at;
    if (left < CENTRAL_BYTES || !is(central, "PK\1\2"))
        return bad(r, "its directory is shorter than it says");
    size_t name = (size_t)number(central + 28, 2), extra = (size_t)number(central + 30, 2);
    size_t comment = (size_t)number(central + 32, 2);
    unsigned flags = (unsigned)number(central + 8, 2), method = (unsigned)number(central + 10, 2);
    uint64_t packed = number(central + 20, 4), unpacked = number(central + 24, 4);
    uint64_t offset = number(central + 42, 4);
    if (name + extra + comment > left - CENTRAL_BYTES || name == 0)
        return bad(r, "its directory is shorter than it says");
    if (flags & 1)
        return bad(r, "it is encrypted");
    if (method != 0 && method != 8)
        return bad(r, "an entry is neither stored nor deflated");
    if (!widen(r, central + CENTRAL_BYTES + name, extra, &unpacked, &packed, &offset))
        return false;
    if (unpacked > SIZE_MAX / 2 || (method == 0 && packed != unpacked))
        return bad(r, "the sizes of an entry are impossible");
    *entry = (struct zip_entry){ .name = (const char *)central + CENTRAL_BYTES,
                                 .name_length = name,
                                 .packed = (size_t)packed,
                                 .size = (size_t)unpacked,
                                 .deflated = method == 8 };
    *at += CENTRAL_BYTES + name + extra + comment;
    return locate(r, offset, packed, directory->offset, method, entry);
}

static int by_place(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->packed > y->packed) - (x->packed < y->packed);
}

static int by_name(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    size_t shorter = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = memcmp(x->name, y->name, shorter);
    return order ? order : (x->name_length > y->name_length) - (x->name_length < y->name_length);
}

static bool check_entries(const struct reader *r, struct zip *zip)
{
    qsort(zip->entries, zip->n_entries, sizeof *zip->entries, by_place);
    for (size_t i = 1; i < zip->n_entries; i++)
        if (zip->entries[i].bytes < zip->entries[i - 1].bytes + zip->entries[i - 1].packed +
                                        LOCAL_BYTES + zip->entries[i].name_length)
            return bad(r, "two entries overlap");
    qsort(zip->entries, zip->n_entries, sizeof *zip->entries, by_name);
    for (size_t i = 1; i < zip->n_entries; i++)
        if (by_name(&zip->entries[i - 1], &zip->entries[i]) == 0)
            return err_set(r->err, ERR_FORMAT,
                           "%s: a damaged zip archive: there are two entries '%.*s'", r->path,
                           (int)(zip->entries[i].name_length % 200), zip->entries[i].name);
    return true;
}

bool zip_open(const uint8_t *bytes, size_t size, const char *path, struct zip *out, struct err *err)
{
    struct reader r = { bytes, size, path, err };
    struct directory directory = { 0 };
    *out = (struct zip){ 0 };
    if (!find_directory(&r, &directory))
        return false;
    out->entries = calloc((size_t)directory.entries + 1, sizeof *out->entries);
    if (!out->entries)
        return err_memory(err, path);
    uint64_t at = directory.offset;
    bool ok = true;
    while (ok && out->n_entries < directory.entries) {
        ok = read_entry(&r, &directory, &at, &out->entries[out->n_entries]);
        out->n_entries += ok;
    }
    ok = ok && check_entries(&r, out);
    if (!ok)
        zip_close(out);
    return ok;
}

void zip_close(struct zip *zip)
{
    free(zip->entries);
    *zip = (struct zip){ 0 };
}

const struct zip_entry *zip_find(const struct zip *zip, const char *name)
{
    struct zip_entry key = { .name = name, .name_length = strlen(name) };
    return zip->n_entries
               ? bsearch(&key, zip->entries, zip->n_entries, sizeof *zip->entries, by_name)
               : NULL;
}

bool zip_read(const struct zip_entry *entry, const char *path, size_t limit, const uint8_t **out,
              uint8_t **owned, struct err *err)
{
    int length = (int)(entry->name_length < 200 ? entry->name_length : 200);
    size_t got = 0;
    *owned = NULL;
    if (entry->size > limit)
        return err_set(err, ERR_FORMAT, "%s: the entry '%.*s' has %zu bytes, more than %zu", path,
                       length, entry->name, entry->size, limit);
    if (!entry->deflated) {
        *out = entry->bytes;
        return true;
    }
    if (entry->size / DEFLATE_RATIO > entry->packed)
        return err_set(err, ERR_FORMAT, "%s: the entry '%.*s' cannot have %zu bytes", path, length,
                       entry->name, entry->size);
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    *owned = malloc(entry->size + 1);
    bool ok = (inflater && *owned) || err_memory(err, path);
    if (ok && (libdeflate_deflate_decompress(inflater, entry->bytes, entry->packed, *owned,
                                             entry->size, &got) != LIBDEFLATE_SUCCESS ||
               got != entry->size))
        ok = err_set(err, ERR_FORMAT, "%s: the entry '%.*s' is damaged", path, length, entry->name);
    libdeflate_free_decompressor(inflater);
    if (!ok)
        free(*owned), *owned = NULL;
    *out = *owned;
    return ok;
}
