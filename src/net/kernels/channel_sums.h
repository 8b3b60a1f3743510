/* channel_sums.h: sums over all pixels of blocked images [images, blocks, height, width, lanes], as
 * gradients of biases are. Every channel is summed row by row, in the same order on any processor.
 */
#ifndef NET_KERNELS_CHANNEL_SUMS_H
#define NET_KERNELS_CHANNEL_SUMS_H
#include <stdint.h>

struct channel_sums {
    int64_t images, channels, height, width;
    int64_t lanes; /* 8 or 16 */
};

/* Adds the sums of the channels of one block to those of `to` [channels]. */
void channel_sums_add(const struct channel_sums *s, int64_t block, const float *x, float *to);
#endif
