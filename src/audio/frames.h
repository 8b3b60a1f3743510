/* frames.h: a recording -> the inputs of a network: so many log-mel frames, every band with mean 0
 * and deviation 1 over the recording, padded with zeros; and a mask of groups of frames that is 0
 * for padding. */
#ifndef AUDIO_FRAMES_H
#define AUDIO_FRAMES_H
#include "audio/mel.h"

#define FRAMES_PER_TOKEN 4     /* frames that a network joins to one token of its encoder */
#define FRAMES_MOST_TOKENS 512 /* that an encoder has positions for */

/* What a network takes of a recording. */
struct frames_rule {
    const struct mel *mel; /* must outlive this */
    int64_t frames;        /* a multiple of FRAMES_PER_TOKEN; of longer recordings the first */
    bool refuse;           /* longer ones are an error instead */
};

/* The frames of one recording. */
struct frames {
    float *values; /* [n, bands] */
    int64_t n;
    bool cut;      /* the recording was longer */
    uint64_t hash; /* of the samples in the file */
};

/* The most frames for recordings of up to so many seconds; 0: none, or too many. */
int64_t frames_of_seconds(const struct mel_options *options, double seconds);
double frames_seconds(const struct frames_rule *rule);

/* Of a WAV file, at the rate of the rule. *out is the caller's; free with frames_free.
 * Thread-safe. */
bool frames_read(const struct frames_rule *rule, const char *path, struct frames *out,
                 struct err *err);
void frames_free(struct frames *frames); /* also fine on a zeroed struct */
/* input [rule frames, bands], mask [rule frames / FRAMES_PER_TOKEN] */
void frames_fill(const struct frames_rule *rule, const struct frames *frames, float *input,
                 float *mask);
#endif
