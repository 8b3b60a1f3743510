/* winograd_points.h: Winograd's transforms along one side of a tile, included once for each
 * instruction set by winograd_conv_loops.h, whose macros it uses. A side of m outputs has m + 2
 * points; a side with fewer outputs is computed from fewer of the same points, so that the same
 * weights serve both: their factor 1 / product of (p - q) over all points q is undone in the inputs
 * for the omitted points q. docs/kernels.md derives them. */

/* Bt d: from the inputs of a side to the points. o must not be d. Points 0, +-1, infinity. */
INLINE void VARIANT(points_of_2)(VEC *o, const VEC *d)
{
    o[0] = d[2] - d[0];
    o[1] = d[2] + d[1];
    o[2] = d[2] - d[1];
    o[3] = d[3] - d[1];
}

/* At m: from the points to the outputs. */
INLINE void VARIANT(outputs_of_2)(VEC *y, const VEC *m)
{
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = (m[1] - m[2]) + m[3];
}

/* One output of a tile of two. Points 0, 1, infinity. */
INLINE void VARIANT(points_of_2_for_1)(VEC *o, const VEC *d)
{
    o[0] = d[1] - d[0];
    o[1] = d[1] + d[1];
    o[2] = d[2] - d[1];
}

/* Points 0, +-a, +-b, infinity; 1/sqrt(2) and sqrt(2) lose four times less than 1 and 2. */
#define POINT_A 0.70710678118654752
#define POINT_B 1.41421356237309505

INLINE void VARIANT(points_of_4)(VEC *o, const VEC *d)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    const VEC aa = VEC_SET(-0.5f), bb = VEC_SET(-2.0f), sum = VEC_SET(-2.5f); /* a a b b = 1 */
    VEC even_b = VEC_FMA(bb, d[2], d[4]), odd_b = VEC_FMA(bb, d[1], d[3]);
    VEC even_a = VEC_FMA(aa, d[2], d[4]), odd_a = VEC_FMA(aa, d[1], d[3]);
    o[0] = VEC_FMA(sum, d[2], d[4]) + d[0];
    o[1] = VEC_FMA(a, odd_b, even_b);
    o[2] = VEC_FMA(-a, odd_b, even_b);
    o[3] = VEC_FMA(b, odd_a, even_a);
    o[4] = VEC_FMA(-b, odd_a, even_a);
    o[5] = VEC_FMA(sum, d[3], d[5]) + d[1];
}

INLINE void VARIANT(outputs_of_4)(VEC *y, const VEC *m)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    const VEC aa = VEC_SET(0.5f), bb = VEC_SET(2.0f);
    const VEC aaa = VEC_SET((float)(POINT_A * 0.5)), bbb = VEC_SET((float)(POINT_B * 2));
    VEC sum_a = m[1] + m[2], less_a = m[1] - m[2], sum_b = m[3] + m[4], less_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = VEC_FMA(b, less_b, a * less_a);
    y[2] = VEC_FMA(bb, sum_b, aa * sum_a);
    y[3] = VEC_FMA(bbb, less_b, VEC_FMA(aaa, less_a, m[5]));
}

/* Three outputs of a tile of four. Points 0, +-a, b, infinity; b = 2 a. */
INLINE void VARIANT(points_of_4_for_3)(VEC *o, const VEC *d)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    const VEC half = VEC_SET(-0.5f), two = VEC_SET(-2.0f), middle = VEC_SET(-1.5f);
    VEC odd = VEC_FMA(half, d[1], d[3]);
    o[0] = VEC_FMA(b, odd, VEC_FMA(two, d[2], d[0]));
    o[1] = VEC_FMA(VEC_SET((float)(3 * POINT_A)), d[3] - d[1], middle * d[2]);
    o[2] = VEC_FMA(a, d[3] + d[1], middle * d[2]);
    o[3] = VEC_SET((float)(2 * POINT_B)) * odd;
    o[4] = VEC_FMA(-b, odd, VEC_FMA(half, d[2], d[4]));
}

INLINE void VARIANT(outputs_of_4_for_3)(VEC *y, const VEC *m)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    VEC sum = m[1] + m[2];
    y[0] = m[0] + sum + m[3];
    y[1] = VEC_FMA(b, m[3], a * (m[1] - m[2]));
    y[2] = VEC_FMA(VEC_SET(2.0f), m[3], VEC_FMA(VEC_SET(0.5f), sum, m[4]));
}

/* Two of four. Points 0, +-a, infinity. */
INLINE void VARIANT(points_of_4_for_2)(VEC *o, const VEC *d)
{
    const VEC side = VEC_SET((float)(1.5 * POINT_A)), middle = VEC_SET(-1.5f) * d[2];
    o[0] = VEC_FMA(VEC_SET(-2.0f), d[2], d[0]);
    o[1] = VEC_FMA(-side, d[1], middle);
    o[2] = VEC_FMA(side, d[1], middle);
    o[3] = VEC_FMA(VEC_SET(-0.5f), d[1], d[3]);
}

INLINE void VARIANT(outputs_of_4_for_2)(VEC *y, const VEC *m)
{
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = VEC_FMA(VEC_SET((float)POINT_A), m[1] - m[2], m[3]);
}

/* One of four. Points 0, a, infinity. */
INLINE void VARIANT(points_of_4_for_1)(VEC *o, const VEC *d)
{
    o[0] = VEC_FMA(VEC_SET((float)-POINT_B), d[1], d[0]);
    o[1] = VEC_SET((float)(-3 * POINT_A)) * d[1];
    o[2] = VEC_FMA(VEC_SET((float)-POINT_A), d[1], d[2]);
}

INLINE void VARIANT(outputs_of_1)(VEC *y, const VEC *m)
{
    y[0] = m[0] + m[1] + m[2];
}

/* Points 0, +-1/2, +-1, +-2, infinity: all factors are exact, and their product is 1. */
INLINE void VARIANT(points_of_6)(VEC *o, const VEC *d)
{
    const VEC half = VEC_SET(0.5f), two = VEC_SET(2.0f), five = VEC_SET(-5.0f);
    const VEC low = VEC_SET(-1.25f), middle = VEC_SET(-4.25f), high = VEC_SET(5.25f);
    const VEC four = VEC_SET(4.0f), quarter = VEC_SET(0.25f);
    VEC even_1 = VEC_FMA(middle, d[4], d[2] + d[6]), odd_1 = VEC_FMA(middle, d[3], d[1] + d[5]);
    VEC even_h = VEC_FMA(four, d[2], VEC_FMA(five, d[4], d[6]));
    VEC odd_h = VEC_FMA(four, d[1], VEC_FMA(five, d[3], d[5]));
    VEC even_2 = VEC_FMA(quarter, d[2], VEC_FMA(low, d[4], d[6]));
    VEC odd_2 = VEC_FMA(quarter, d[1], VEC_FMA(low, d[3], d[5]));
    o[0] = VEC_FMA(high, d[2] - d[4], d[6] - d[0]);
    o[1] = VEC_FMA(half, odd_h, even_h);
    o[2] = VEC_FMA(-half, odd_h, even_h);
    o[3] = even_1 + odd_1;
    o[4] = even_1 - odd_1;
    o[5] = VEC_FMA(two, odd_2, even_2);
    o[6] = VEC_FMA(-two, odd_2, even_2);
    o[7] = VEC_FMA(high, d[3] - d[5], d[7] - d[1]);
}

INLINE void VARIANT(outputs_of_6)(VEC *y, const VEC *m)
{
    VEC sum_h = m[1] + m[2], less_h = m[1] - m[2], sum_1 = m[3] + m[4], less_1 = m[3] - m[4];
    VEC sum_2 = m[5] + m[6], less_2 = m[5] - m[6];
    y[0] = m[0] + sum_h + sum_1 + sum_2;
    y[1] = VEC_FMA(VEC_SET(2.0f), less_2, VEC_FMA(VEC_SET(0.5f), less_h, less_1));
    y[2] = VEC_FMA(VEC_SET(4.0f), sum_2, VEC_FMA(VEC_SET(0.25f), sum_h, sum_1));
    y[3] = VEC_FMA(VEC_SET(8.0f), less_2, VEC_FMA(VEC_SET(0.125f), less_h, less_1));
    y[4] = VEC_FMA(VEC_SET(16.0f), sum_2, VEC_FMA(VEC_SET(0.0625f), sum_h, sum_1));
    y[5] = VEC_FMA(VEC_SET(32.0f), less_2, VEC_FMA(VEC_SET(0.03125f), less_h, less_1)) + m[7];
}

/* A dy: from gradients of outputs to the points, the adjoint of outputs_of_4. */
INLINE void VARIANT(gradients_of_4)(VEC *o, const VEC *y)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    const VEC aa = VEC_SET(0.5f), bb = VEC_SET(2.0f);
    VEC even_a = VEC_FMA(aa, y[2], y[0]), odd_a = VEC_FMA(aa, y[3], y[1]);
    VEC even_b = VEC_FMA(bb, y[2], y[0]), odd_b = VEC_FMA(bb, y[3], y[1]);
    o[0] = y[0];
    o[1] = VEC_FMA(a, odd_a, even_a);
    o[2] = VEC_FMA(-a, odd_a, even_a);
    o[3] = VEC_FMA(b, odd_b, even_b);
    o[4] = VEC_FMA(-b, odd_b, even_b);
    o[5] = y[3];
}

INLINE void VARIANT(gradients_of_4_for_3)(VEC *o, const VEC *y)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    VEC even = VEC_FMA(VEC_SET(0.5f), y[2], y[0]);
    o[0] = y[0];
    o[1] = VEC_FMA(a, y[1], even);
    o[2] = VEC_FMA(-a, y[1], even);
    o[3] = VEC_FMA(b, y[1], VEC_FMA(VEC_SET(2.0f), y[2], y[0]));
    o[4] = y[2];
}

INLINE void VARIANT(gradients_of_4_for_2)(VEC *o, const VEC *y)
{
    const VEC a = VEC_SET((float)POINT_A);
    o[0] = y[0];
    o[1] = VEC_FMA(a, y[1], y[0]);
    o[2] = VEC_FMA(-a, y[1], y[0]);
    o[3] = y[1];
}

/* `outputs` outputs of a side of `tile`, both known at compile time. */
INLINE void VARIANT(points_of)(int tile, int outputs, VEC *o, const VEC *d)
{
    if (tile == 6)
        VARIANT(points_of_6)(o, d);
    else if (tile == 4 && outputs == 4)
        VARIANT(points_of_4)(o, d);
    else if (tile == 4 && outputs == 3)
        VARIANT(points_of_4_for_3)(o, d);
    else if (tile == 4 && outputs == 2)
        VARIANT(points_of_4_for_2)(o, d);
    else if (tile == 4)
        VARIANT(points_of_4_for_1)(o, d);
    else if (outputs == 2)
        VARIANT(points_of_2)(o, d);
    else
        VARIANT(points_of_2_for_1)(o, d);
}

INLINE void VARIANT(outputs_of)(int tile, int outputs, VEC *y, const VEC *m)
{
    if (outputs == 1)
        VARIANT(outputs_of_1)(y, m);
    else if (tile == 6)
        VARIANT(outputs_of_6)(y, m);
    else if (tile == 4 && outputs == 4)
        VARIANT(outputs_of_4)(y, m);
    else if (tile == 4 && outputs == 3)
        VARIANT(outputs_of_4_for_3)(y, m);
    else if (tile == 4)
        VARIANT(outputs_of_4_for_2)(y, m);
    else
        VARIANT(outputs_of_2)(y, m);
}

/* Of a side of 4. */
INLINE void VARIANT(gradients_of)(int outputs, VEC *o, const VEC *y)
{
    if (outputs == 4)
        VARIANT(gradients_of_4)(o, y);
    else if (outputs == 3)
        VARIANT(gradients_of_4_for_3)(o, y);
    else if (outputs == 2)
        VARIANT(gradients_of_4_for_2)(o, y);
    else
        o[0] = o[1] = o[2] = y[0];
}
