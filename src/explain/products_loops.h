/* products_loops.h: the loops of products.c for one instruction set (net/kernels/each_level.h). */

EACH_TARGET static void EACH_NAME(matrix_block)(const double *a, const double *b, int64_t k,
                                                int64_t n, double *out)
{
    four sums[4][2] = { 0 };
    for (int64_t i = 0; i < k; i++) {
        four b0, b1;
        memcpy(&b0, b + i * n, sizeof b0);
        memcpy(&b1, b + i * n + 4, sizeof b1);
        for (int row = 0; row < 4; row++) {
            double factor = a[row * k + i];
            sums[row][0] += factor * b0;
            sums[row][1] += factor * b1;
        }
    }
    for (int row = 0; row < 4; row++)
        memcpy(out + row * n, sums[row], sizeof sums[row]);
}

EACH_TARGET static void EACH_NAME(rows_block)(const float *const *a, const float *const *b,
                                              int64_t count, eight sums[2][4])
{
    for (int64_t i = 0; i < count; i += 8) {
        eight b_now[4];
        for (int column = 0; column < 4; column++)
            memcpy(&b_now[column], b[column] + i, sizeof b_now[column]);
        for (int row = 0; row < 2; row++) {
            eight a_now;
            memcpy(&a_now, a[row] + i, sizeof a_now);
            for (int column = 0; column < 4; column++)
                sums[row][column] += a_now * b_now[column];
        }
    }
}

EACH_TARGET static double EACH_NAME(dot)(const double *x, const double *y, int64_t n)
{
    four sums[2] = { 0 };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int half = 0; half < 2; half++) {
            four x_now, y_now;
            memcpy(&x_now, x + i + 4 * half, sizeof x_now);
            memcpy(&y_now, y + i + 4 * half, sizeof y_now);
            sums[half] += x_now * y_now;
        }
    four both = sums[0] + sums[1];
    double sum = (both[0] + both[1]) + (both[2] + both[3]);
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

EACH_TARGET static void EACH_NAME(add)(double factor, const double *x, int64_t n, double *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        four x_now, y_now;
        memcpy(&x_now, x + i, sizeof x_now);
        memcpy(&y_now, y + i, sizeof y_now);
        y_now += factor * x_now;
        memcpy(y + i, &y_now, sizeof y_now);
    }
    for (; i < n; i++)
        y[i] += factor * x[i];
}

EACH_TARGET static void EACH_NAME(rotate)(double c, double s, int64_t n, double *x, double *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        four x_now, y_now, turned;
        memcpy(&x_now, x + i, sizeof x_now);
        memcpy(&y_now, y + i, sizeof y_now);
        turned = c * x_now - s * y_now;
        y_now = s * x_now + c * y_now;
        memcpy(x + i, &turned, sizeof turned);
        memcpy(y + i, &y_now, sizeof y_now);
    }
    for (; i < n; i++) {
        double turned = c * x[i] - s * y[i];
        y[i] = s * x[i] + c * y[i];
        x[i] = turned;
    }
}
