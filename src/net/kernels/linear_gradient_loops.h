/* linear_gradient_loops.h: included once for each instruction set with EACH_TARGET and
 * EACH_NAME(name). */

/* sums [n] += the columns of dy [rows, n], whose rows are `step` floats apart. */
static EACH_TARGET void EACH_NAME(sum_rows)(int64_t rows, int64_t n, const float *dy, int64_t step,
                                            double *sums)
{
    for (int64_t r = 0; r < rows; r++, dy += step)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) sums[i] += (double)dy[i];
}
