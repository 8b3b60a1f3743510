/* wav.c: see wav.h. */
#include "audio/wav.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"

#define MOST_BYTES ((size_t)1 << 30)
enum { FORMAT_PCM = 1, FORMAT_FLOAT = 3, FORMAT_EXTENSIBLE = 0xfffe };
enum { RIFF_HEADER = 12, CHUNK_HEADER = 8, FMT_BYTES = 16, FMT_EXTENSIBLE_BYTES = 40 };

struct wav_format {
    int tag, channels, bits;
    int64_t rate, block; /* bytes of a sample of all channels */
};

struct parser {
    const uint8_t *bytes;
    size_t size;
    const char *path;
    struct err *err;
};

static uint32_t little(const uint8_t *at, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static bool wrong(const struct parser *p, const char *fact)
{
    return err_set(p->err, ERR_FORMAT, "%s: %s", p->path, fact);
}

/* --- chunks --- */

struct chunk {
    const uint8_t *data;
    size_t size;
};

/* The first chunk of this name; a chunk that is longer than the file is an error. */
static bool find_chunk(const struct parser *p, const char *name, struct chunk *out)
{
    for (size_t at = RIFF_HEADER; at + CHUNK_HEADER <= p->size;) {
        size_t size = little(p->bytes + at + 4, 4), left = p->size - at - CHUNK_HEADER;
        if (size > left)
            return err_set(p->err, ERR_FORMAT,
                           "%s: the chunk '%.4s' has %zu bytes, but only %zu are there; the file "
                           "is cut off",
                           p->path, p->bytes + at, size, left);
        if (memcmp(p->bytes + at, name, 4) == 0) {
            *out = (struct chunk){ p->bytes + at + CHUNK_HEADER, size };
            return true;
        }
        at += CHUNK_HEADER + size + (size & 1);
    }
    return err_set(p->err, ERR_FORMAT, "%s: has no chunk '%s'; the file is cut off, or not audio",
                   p->path, name);
}

static bool check_header(const struct parser *p)
{
    if (p->size < RIFF_HEADER || memcmp(p->bytes, "RIFF", 4) != 0 ||
        memcmp(p->bytes + 8, "WAVE", 4) != 0)
        return wrong(p, "not a WAV file; convert it, e.g. with ffmpeg -i FILE FILE.wav");
    return true;
}

/* --- the format --- */

/* The format's number is followed by the rest of an identifier that all of Microsoft's have. */
static bool read_extensible(const struct parser *p, const struct chunk *fmt, int *tag)
{
    static const uint8_t rest[14] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71 };
    if (fmt->size < FMT_EXTENSIBLE_BYTES || memcmp(fmt->data + 26, rest, sizeof rest) != 0)
        return wrong(p, "its format is not known (WAVE_FORMAT_EXTENSIBLE)");
    *tag = (int)little(fmt->data + 24, 2);
    return true;
}

static bool check_format(const struct parser *p, const struct wav_format *f)
{
    bool pcm =
        f->tag == FORMAT_PCM && (f->bits == 8 || f->bits == 16 || f->bits == 24 || f->bits == 32);
    if (!pcm && !(f->tag == FORMAT_FLOAT && f->bits == 32))
        return err_set(p->err, ERR_FORMAT,
                       "%s: format %d with %d bits is not known; convert it to PCM of 16 bits, "
                       "e.g. with ffmpeg -c:a pcm_s16le",
                       p->path, f->tag, f->bits);
    if (f->channels < 1 || f->channels > 2)
        return err_set(p->err, ERR_FORMAT,
                       "%s: has %d channels, not one or two; mix them, e.g. with ffmpeg -ac 1",
                       p->path, f->channels);
    if (f->rate < WAV_MIN_RATE || f->rate > WAV_MAX_RATE)
        return err_set(p->err, ERR_FORMAT, "%s: has %lld samples a second, not %d to %d", p->path,
                       (long long)f->rate, WAV_MIN_RATE, WAV_MAX_RATE);
    if (f->block != f->channels * f->bits / 8)
        return err_set(p->err, ERR_FORMAT, "%s: %d channels of %d bits do not take %lld bytes",
                       p->path, f->channels, f->bits, (long long)f->block);
    return true;
}

static bool read_format(const struct parser *p, struct wav_format *out)
{
    struct chunk fmt;
    if (!find_chunk(p, "fmt ", &fmt))
        return false;
    if (fmt.size < FMT_BYTES)
        return wrong(p, "the chunk 'fmt ' is too short");
    *out = (struct wav_format){ .tag = (int)little(fmt.data, 2),
                                .channels = (int)little(fmt.data + 2, 2),
                                .rate = little(fmt.data + 4, 4),
                                .block = little(fmt.data + 12, 2),
                                .bits = (int)little(fmt.data + 14, 2) };
    if (out->tag == FORMAT_EXTENSIBLE && !read_extensible(p, &fmt, &out->tag))
        return false;
    return check_format(p, out);
}

/* --- samples --- */

static float sample_at(const struct wav_format *f, const uint8_t *at)
{
    uint32_t raw = little(at, f->bits / 8);
    float real;
    if (f->tag == FORMAT_FLOAT) {
        memcpy(&real, &raw, sizeof real);
        return real;
    }
    if (f->bits == 8)
        return ((float)raw - 128) / 128;
    /* the sign is the highest bit of the shifted number */
    return (float)((double)(int32_t)(raw << (32 - f->bits)) / 2147483648.0);
}

static bool read_samples(const struct parser *p, const struct wav_format *f, struct wav *out)
{
    struct chunk data;
    if (!find_chunk(p, "data", &data))
        return false;
    int64_t n = (int64_t)data.size / f->block, each = f->bits / 8;
    if ((int64_t)data.size % f->block != 0)
        return wrong(p, "ends within a sample; the file is cut off");
    if (n == 0)
        return wrong(p, "has no samples");
    if (!(out->samples = malloc((size_t)n * sizeof *out->samples)))
        return err_memory(p->err, p->path);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *at = data.data + i * f->block;
        float value = sample_at(f, at);
        if (f->channels == 2)
            value = (value + sample_at(f, at + each)) / 2;
        if (!isfinite(value))
            return err_set(p->err, ERR_FORMAT, "%s: sample %lld is not a finite number", p->path,
                           (long long)i);
        out->samples[i] = value;
    }
    out->n = n;
    out->rate = f->rate;
    return true;
}

bool wav_parse(const void *bytes, size_t size, const char *path, struct wav *out, struct err *err)
{
    struct parser p = { bytes, size, path, err };
    struct wav_format format = { 0 };
    *out = (struct wav){ 0 };
    if (check_header(&p) && read_format(&p, &format) && read_samples(&p, &format, out))
        return true;
    wav_free(out);
    return false;
}

bool wav_read(const char *path, struct wav *out, struct err *err)
{
    char *bytes = NULL;
    size_t size;
    *out = (struct wav){ 0 };
    bool ok =
        file_read(path, MOST_BYTES, &bytes, &size, err) && wav_parse(bytes, size, path, out, err);
    free(bytes);
    return ok;
}

void wav_free(struct wav *wav)
{
    free(wav->samples);
    *wav = (struct wav){ 0 };
}
