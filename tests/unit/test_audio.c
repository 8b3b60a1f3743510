/* test_audio.c: recordings against soundfile, torchaudio and librosa (tests/golden/audio.py), and
 * bad files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "audio/frames.h"
#include "audio/resample.h"
#include "audio/spectrum.h"
#include "audio/vary.h"
#include "audio/wav.h"
#include "base/file.h"
#include "tests/unit/support/golden_json.h"
#include "tests/unit/support/paths.h"

#define GOLDEN "tests/golden/audio.json"

/* The bytes of a file in hexadecimal numbers, the caller's. */
static uint8_t *bytes_of(const json_t *object, size_t *size)
{
    const char *hex = json_string_value(json_object_get(object, "file"));
    assert_non_null(hex);
    *size = strlen(hex) / 2;
    uint8_t *bytes = malloc(*size);
    for (size_t i = 0; i < *size; i++) {
        char two[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        bytes[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return bytes;
}

/* Whole numbers of 16 bits as they are read from a file. */
static float *samples_of(const json_t *object, size_t *n)
{
    double *numbers = golden_numbers(object, "x", n);
    float *samples = malloc(*n * sizeof *samples);
    for (size_t i = 0; i < *n; i++)
        samples[i] = (float)(numbers[i] / 32768);
    free(numbers);
    return samples;
}

/* got [n] are the numbers y of the object but for the tolerance. */
static void compare(const json_t *object, const float *got, int64_t n, double tolerance,
                    const char *what)
{
    size_t wanted;
    double *want = golden_numbers(object, "y", &wanted), worst = 0;
    assert_int_equal(n, wanted);
    for (size_t i = 0; i < wanted; i++)
        worst = fmax(worst, fabs((double)got[i] - want[i]));
    print_message("%s: %.1e\n", what, worst);
    assert_true(worst <= tolerance);
    free(want);
}

static void formats_are_read_as_soundfile_reads_them(void **state)
{
    (void)state;
    json_t *all = golden_json(GOLDEN), *formats = json_object_get(all, "formats");
    assert_int_equal(json_array_size(formats), 9);
    for (size_t i = 0; i < json_array_size(formats); i++) {
        const json_t *format = json_array_get(formats, i);
        const char *name = json_string_value(json_object_get(format, "name"));
        size_t size, n;
        uint8_t *bytes = bytes_of(format, &size);
        double *want = golden_numbers(format, "samples", &n);
        struct wav wav;
        struct err err = { 0 };
        if (!wav_parse(bytes, size, name, &wav, &err))
            fail_msg("%s", err.text);
        assert_int_equal(wav.n, n);
        assert_int_equal(wav.rate, 11025);
        for (size_t k = 0; k < n; k++)
            assert_near((double)wav.samples[k], want[k], 1e-7, name);
        wav_free(&wav);
        free(want);
        free(bytes);
    }
    json_decref(all);
}

static void resampled_as_by_torchaudio(void **state)
{
    (void)state;
    json_t *all = golden_json(GOLDEN), *cases = json_object_get(all, "resampled");
    assert_int_equal(json_array_size(cases), 6);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        int64_t rate = (int64_t)golden_number(one, "rate", 0), n_out;
        size_t n;
        float *x = samples_of(one, &n), *y = NULL;
        char what[40];
        struct err err = { 0 };
        assert_true(resample(x, (int64_t)n, rate, 16000, &y, &n_out, &err));
        snprintf(what, sizeof what, "%lld Hz", (long long)rate);
        compare(one, y, n_out, 2e-6, what);
        free(x);
        free(y);
    }
    json_decref(all);
}

static void power_is_that_of_the_sum(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 2, 13, 64, 105, 400, 512 };
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int64_t n = lengths[l];
        struct spectrum *spectrum = NULL;
        struct spectrum_number *room = calloc((size_t)n, sizeof *room);
        double *x = calloc((size_t)n, sizeof *x), *power = calloc((size_t)n, sizeof *power);
        assert_true(spectrum_new(n, &spectrum, NULL));
        for (int64_t i = 0; i < n; i++)
            x[i] = sin((double)(i * i));
        spectrum_power(spectrum, x, room, power);
        for (int64_t k = 0; k <= n / 2; k++) {
            double re = 0, im = 0;
            for (int64_t i = 0; i < n; i++) {
                double angle = 2 * M_PI * (double)(i * k % n) / (double)n;
                re += x[i] * cos(angle), im += x[i] * sin(angle);
            }
            assert_near(power[k], re * re + im * im, 1e-10, "power");
        }
        spectrum_free(spectrum);
        free(room), free(x), free(power);
    }
    struct spectrum *none = NULL;
    struct err err = { 0 };
    assert_false(spectrum_new(34, &none, &err));
    assert_string_equal(err.text, "a Fourier transform of 34 samples is not known: a prime factor "
                                  "is above 13");
    assert_false(spectrum_new(1, &none, &err));
}

static void frames_are_those_of_librosa(void **state)
{
    (void)state;
    json_t *all = golden_json(GOLDEN), *one = json_object_get(all, "mel");
    size_t n;
    float *x = samples_of(one, &n);
    struct mel *mel = NULL;
    assert_true(mel_new(&MEL_USUAL, &mel, NULL));
    int64_t frames = mel_count(mel, (int64_t)n);
    float *out = calloc((size_t)(frames * 80), sizeof *out);
    assert_true(mel_frames(mel, x, (int64_t)n, frames, out, NULL));
    compare(one, out, frames * 80, 1e-4, "log-mel");
    mel_free(mel);
    free(x), free(out);
    json_decref(all);
}

/* Writes the recording of the golden file to the folder of the test. */
static void write_recording(const char *path, const json_t *one)
{
    struct file_out file;
    size_t size;
    uint8_t *bytes = bytes_of(one, &size);
    assert_true(file_out_open(&file, path, NULL));
    fwrite(bytes, 1, size, file.stream);
    assert_true(file_out_commit(&file, NULL));
    free(bytes);
}

static void recordings_become_frames_and_a_mask(void **state)
{
    (void)state;
    json_t *all = golden_json(GOLDEN), *one = json_object_get(all, "frames");
    char *path = scratch_path("recording.wav");
    struct mel *mel = NULL;
    struct frames frames;
    struct err err = { 0 };
    write_recording(path, one);
    assert_true(mel_new(&MEL_USUAL, &mel, &err));
    struct frames_rule rule = { .mel = mel, .frames = 24 };
    if (!frames_read(&rule, path, &frames, &err))
        fail_msg("%s", err.text);
    compare(one, frames.values, frames.n * 80, 1e-4, "frames");
    assert_int_equal(frames.n, 19);
    assert_false(frames.cut);

    float input[24 * 80], mask[6];
    memset(input, 1, sizeof input);
    frames_fill(&rule, &frames, input, mask);
    assert_memory_equal(input, frames.values, 19 * 80 * sizeof *input);
    for (int i = 19 * 80; i < 24 * 80; i++)
        assert_true(input[i] == 0);
    for (int i = 0; i < 6; i++)
        assert_true(mask[i] == (i < 5));
    frames_free(&frames);

    rule.frames = 16;
    assert_true(frames_read(&rule, path, &frames, &err));
    assert_true(frames.cut && frames.n == 16);
    frames_free(&frames);
    rule.refuse = true;
    assert_false(frames_read(&rule, path, &frames, &err));
    assert_non_null(strstr(err.text, "recording.wav: has 0.18 s, more than the 0.16 s that fit; "
                                     "raise data.max_seconds, or use data.long: truncate"));
    mel_free(mel);
    free(path);
    json_decref(all);
}

/* Frames whose value is their number plus that of the band / 100. */
static struct frames counted(int64_t n)
{
    struct frames frames = { .values = calloc((size_t)(n * 80), sizeof(float)), .n = n };
    for (int64_t i = 0; i < n * 80; i++)
        frames.values[i] = (float)(i / 80) + (float)(i % 80) / 100;
    return frames;
}

static void other_voices_are_other_frames(void **state)
{
    (void)state;
    enum { ALL = 120 };
    static float plain[ALL * 80], varied[ALL * 80], again[ALL * 80];
    float mask[ALL / 4], other[ALL / 4];
    struct mel *mel = NULL;
    assert_true(mel_new(&MEL_USUAL, &mel, NULL));
    struct frames_rule rule = { .mel = mel, .frames = ALL };
    struct frames frames = counted(100);
    frames_fill(&rule, &frames, plain, mask);
    frames_vary(&rule, &frames, 0, (struct vary_key){ 1, 2, 3 }, varied, other);
    assert_memory_equal(plain, varied, sizeof plain);
    assert_memory_equal(mask, other, sizeof mask);

    bool longer = false, shorter = false, lower = false, higher = false, unheard = false;
    for (uint64_t sample = 0; sample < 40; sample++) {
        struct vary_key key = { 1, 2, sample };
        int64_t n = 0, gone = 0;
        frames_vary(&rule, &frames, 0.1, key, varied, other);
        frames_vary(&rule, &frames, 0.1, key, again, mask);
        assert_memory_equal(varied, again, sizeof varied);
        for (int i = 0; i < ALL / 4; i++)
            n += other[i] > 0;
        assert_true(4 * n >= 88 && 4 * n <= 112); /* 100 / 1.1 to 100 x 1.1, to the next token */
        longer |= n > 25, shorter |= n < 25;
        for (int i = 1; i < 80; i++)
            gone += varied[40 * 80 + i] == 0;
        unheard |= gone > 0 && gone < 79;
        if (gone > 0)
            continue;
        float slope = varied[40 * 80 + 70] - varied[40 * 80];
        lower |= slope<0.69f, higher |= slope> 0.71f;
    }
    assert_true(longer && shorter && lower && higher && unheard);
    frames_vary(&rule, &frames, 0.1, (struct vary_key){ 1, 3, 5 }, again, mask);
    frames_vary(&rule, &frames, 0.1, (struct vary_key){ 1, 2, 5 }, varied, mask);
    assert_memory_not_equal(varied, again, sizeof varied);
    frames_free(&frames);
    mel_free(mel);
}

static void seconds_are_frames(void **state)
{
    (void)state;
    assert_int_equal(frames_of_seconds(&MEL_USUAL, 10), 1000);
    assert_int_equal(frames_of_seconds(&MEL_USUAL, 0.1), 12);
    assert_int_equal(frames_of_seconds(&MEL_USUAL, 20.48), 2048);
    assert_int_equal(frames_of_seconds(&MEL_USUAL, 20.5), 0);
    assert_int_equal(frames_of_seconds(&MEL_USUAL, NAN), 0);
}

/* --- bad files --- */

/* A file with 4 samples of 16 bits: bytes 22: channels, 24: rate, 34: bits, 40: size of data. */
static const uint8_t small[52] = { 'R', 'I',  'F',  'F',  44,  0,    0,    0,    'W', 'A', 'V',
                                   'E', 'f',  'm',  't',  ' ', 16,   0,    0,    0,   1,   0,
                                   1,   0,    0x40, 0x1f, 0,   0,    0x80, 0x3e, 0,   0,   2,
                                   0,   16,   0,    'd',  'a', 't',  'a',  8,    0,   0,   0,
                                   0,   0x40, 0xc0, 0x7f, 0,   0x80, 1,    0 };

static void refuse(const uint8_t *bytes, size_t size, const char *why)
{
    struct wav wav;
    struct err err = { 0 };
    assert_false(wav_parse(bytes, size, "a.wav", &wav, &err));
    assert_null(wav.samples);
    assert_string_equal(err.text, why);
}

static void refuse_with(int at, uint8_t value, const char *why)
{
    uint8_t bytes[sizeof small];
    memcpy(bytes, small, sizeof bytes);
    bytes[at] = value;
    refuse(bytes, sizeof bytes, why);
}

static void bad_files_are_refused_with_the_reason(void **state)
{
    (void)state;
    struct wav wav;
    assert_true(wav_parse(small, sizeof small, "a.wav", &wav, NULL));
    assert_true(wav.n == 4 && wav.rate == 8000 && wav.samples[0] == 0.5f && wav.samples[2] == -1);
    wav_free(&wav);
    refuse(small, 0, "a.wav: not a WAV file; convert it, e.g. with ffmpeg -i FILE FILE.wav");
    refuse_with(0, 'X', "a.wav: not a WAV file; convert it, e.g. with ffmpeg -i FILE FILE.wav");
    refuse(small, 12, "a.wav: has no chunk 'fmt '; the file is cut off, or not audio");
    refuse(small, 36, "a.wav: has no chunk 'data'; the file is cut off, or not audio");
    refuse(small, 50,
           "a.wav: the chunk 'data' has 8 bytes, but only 6 are there; the file is cut "
           "off");
    refuse_with(43, 0xff,
                "a.wav: the chunk 'data' has 4278190088 bytes, but only 8 are there; the "
                "file is cut off");
    refuse_with(40, 7, "a.wav: ends within a sample; the file is cut off");
    refuse_with(40, 0, "a.wav: has no samples");
    refuse_with(16, 12, "a.wav: the chunk 'fmt ' is too short");
    refuse_with(20, 6,
                "a.wav: format 6 with 16 bits is not known; convert it to PCM of 16 bits, "
                "e.g. with ffmpeg -c:a pcm_s16le");
    refuse_with(34, 12,
                "a.wav: format 1 with 12 bits is not known; convert it to PCM of 16 bits, "
                "e.g. with ffmpeg -c:a pcm_s16le");
    refuse_with(20, 0xfe,
                "a.wav: format 254 with 16 bits is not known; convert it to PCM of 16 "
                "bits, e.g. with ffmpeg -c:a pcm_s16le");
    refuse_with(22, 6, "a.wav: has 6 channels, not one or two; mix them, e.g. with ffmpeg -ac 1");
    refuse_with(22, 2, "a.wav: 2 channels of 16 bits do not take 2 bytes");
    refuse_with(25, 0, "a.wav: has 64 samples a second, not 4000 to 192000");

    uint8_t wrong[sizeof small]; /* a float that is not finite */
    memcpy(wrong, small, sizeof wrong);
    wrong[20] = 3, wrong[32] = 4, wrong[34] = 32;
    memset(wrong + 44, 0xff, 8);
    refuse(wrong, sizeof wrong, "a.wav: sample 0 is not a finite number");
    wrong[20] = 0xfe, wrong[21] = 0xff;
    refuse(wrong, sizeof wrong, "a.wav: its format is not known (WAVE_FORMAT_EXTENSIBLE)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_read_as_soundfile_reads_them),
        cmocka_unit_test(resampled_as_by_torchaudio),
        cmocka_unit_test(power_is_that_of_the_sum),
        cmocka_unit_test(frames_are_those_of_librosa),
        cmocka_unit_test(recordings_become_frames_and_a_mask),
        cmocka_unit_test(other_voices_are_other_frames),
        cmocka_unit_test(seconds_are_frames),
        cmocka_unit_test(bad_files_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
