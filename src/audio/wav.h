/* wav.h: WAV files (RIFF): PCM of 8, 16, 24 or 32 bits, or floats of 32, also as
 * WAVE_FORMAT_EXTENSIBLE. Thread-safe. */
#ifndef AUDIO_WAV_H
#define AUDIO_WAV_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define WAV_MIN_RATE 4000
#define WAV_MAX_RATE 192000

/* One channel; two are averaged. */
struct wav {
    float *samples; /* [n], whole numbers scaled to -1 .. 1 */
    int64_t n;      /* at least 1 */
    int64_t rate;   /* samples in a second, WAV_MIN_RATE .. WAV_MAX_RATE */
};

/* A file that is cut off, compressed, empty or of more than two channels is an error. *out is the
 * caller's; free with wav_free. */
bool wav_read(const char *path, struct wav *out, struct err *err);
/* The same from memory; path only names it in messages. */
bool wav_parse(const void *bytes, size_t size, const char *path, struct wav *out, struct err *err);
void wav_free(struct wav *wav); /* also fine on a zeroed struct */
#endif
