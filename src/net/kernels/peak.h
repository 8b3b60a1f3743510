/* peak.h: the processor's peak rate, to compare kernels with. */
#ifndef NET_KERNELS_PEAK_H
#define NET_KERNELS_PEAK_H

/* The most floating point operations per second, in GFLOP/s, that independent fused multiply-adds
 * in registers reach on this number of threads: the best of several runs within about 20 ms. */
double peak_gflops(int threads);
#endif
