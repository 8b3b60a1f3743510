/* vary.h: frames as if another voice had spoken them: at another speed, with the bands of another
 * vocal tract, some frames and bands unheard. For training. */
#ifndef AUDIO_VARY_H
#define AUDIO_VARY_H
#include "audio/frames.h"

/* What is drawn depends on these alone. */
struct vary_key {
    uint64_t seed, epoch, sample;
};

/* The same inputs as frames_fill, varied: speed and frequencies are multiplied by up to 1 + amount
 * or divided by as much; frequencies move as 27 mel for a factor of 6.4, less below 1 kHz; a run of
 * frames and one of bands of up to `amount` of all are 0, which is the mean. amount: 0 to 0.5, 0:
 * nothing changes. Thread-safe. */
void frames_vary(const struct frames_rule *rule, const struct frames *frames, double amount,
                 struct vary_key key, float *input, float *mask);
#endif
