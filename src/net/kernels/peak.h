/* peak.h: what the processor can do at most, to judge kernels by. */
#ifndef NET_KERNELS_PEAK_H
#define NET_KERNELS_PEAK_H

/* The most floating point operations per second, in GFLOP/s, that independent fused multiply-adds
 * in registers reach on so many threads: measured within about 20 ms, the best of several runs. */
double peak_gflops(int threads);
#endif
