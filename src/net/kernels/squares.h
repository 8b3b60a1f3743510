/* squares.h: transposing by squares of 4 x 4 floats, with any processor's registers. Needs the
 * vector128 of vectors.h (SIMD_BITS 128). */
#ifndef NET_KERNELS_SQUARES_H
#define NET_KERNELS_SQUARES_H

/* row [4][4] = row transposed. */
static inline void square_turn(vector128 row[4])
{
    vector128 half[4];
    half[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    half[1] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    half[2] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    half[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++)
    {
        row[2 * i] = __builtin_shufflevector(half[2 * i], half[2 * i + 1], 0, 1, 4, 5);
        row[2 * i + 1] = __builtin_shufflevector(half[2 * i], half[2 * i + 1], 2, 3, 6, 7);
    }
}
#endif
