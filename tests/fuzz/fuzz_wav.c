/* fuzz_wav.c: any bytes as a WAV file: refused with a word, or finite samples at a rate that can be
 * resampled, of which there are not more than the file has bytes. */
#include <math.h>
#include <stdlib.h>
#include "audio/resample.h"
#include "audio/wav.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wav wav;
    struct err err = { .kind = ERR_NONE };
    if (!wav_parse(data, size, "a.wav", &wav, &err)) {
        if (err.kind == ERR_NONE || wav.samples)
            abort();
        return 0;
    }
    fuzz_taken++;
    if (wav.n < 1 || (size_t)wav.n > size || wav.rate < WAV_MIN_RATE || wav.rate > WAV_MAX_RATE)
        abort();
    for (int64_t i = 0; i < wav.n; i++)
        if (!isfinite(wav.samples[i]))
            abort();
    if (wav.rate % 1000 == 0) { /* others have long filters */
        float *out = NULL;
        int64_t n;
        if (!resample(wav.samples, wav.n, wav.rate, 16000, &out, &n, &err) || n < 1)
            abort();
        free(out);
    }
    wav_free(&wav);
    return 0;
}
