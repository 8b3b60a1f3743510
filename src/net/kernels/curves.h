/* curves.h: functions of eight floats as plain sums and products: the same floats on every
 * processor. Included by loops for each instruction set, with EACH_TARGET and EACH_NAME(name):
 * hence no guard. NaN stays NaN. */
#define CURVE static inline __attribute__((always_inline, unused)) EACH_TARGET eight

/* e^v, to 2.4e-7 of it, for v within +-87; beyond it is that of +-87. The exponent is that of
 * 1.5 * 2^23 + v / ln 2, whose last bits are the next integer. */
CURVE EACH_NAME(curve_exp)(eight v)
{
    const eight magic = EIGHT_ALL(12582912.0f);
    v = EIGHT_WHERE(v > 87.0f, EIGHT_ALL(87.0f), v);
    v = EIGHT_WHERE(v < -87.0f, EIGHT_ALL(-87.0f), v);
    eight t = v * 1.44269504f + magic, n = t - magic;
    eight r = v - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    eight e = 1.0f / 720 * r + 1.0f / 120;
    e = e * r + 1.0f / 24;
    e = e * r + 1.0f / 6;
    e = e * r + 0.5f;
    e = (e * r) * r + r + 1.0f;
    eight_bits power = ((eight_bits)t - (eight_bits)magic) << 23;
    return (eight)((eight_bits)e + power);
}

/* The error function, to 4e-7: an odd quotient of polynomials (least largest error within +-3.92,
 * 1.6e-8 before rounding), beyond which it is 1 in float. */
CURVE EACH_NAME(curve_erf)(eight v)
{
    v = EIGHT_WHERE(v > 3.92f, EIGHT_ALL(3.92f), v);
    v = EIGHT_WHERE(v < -3.92f, EIGHT_ALL(-3.92f), v);
    eight s = v * v;
    eight above = s * 2.03473178e-6f + 2.87479721e-4f;
    above = above * s + 3.86834401e-3f;
    above = above * s + 5.30605353e-2f;
    above = above * s + 1.92764446e-1f;
    above = above * s + 1.12837899f;
    eight below = s * 3.80706260e-5f + 1.18811906e-3f;
    below = below * s + 1.51723297e-2f;
    below = below * s + 1.15084782e-1f;
    below = below * s + 5.04164696e-1f;
    below = below * s + 1.0f;
    return v * above / below;
}

CURVE EACH_NAME(curve_gelu)(eight v)
{
    return 0.5f * v * (1.0f + EACH_NAME(curve_erf)(v * 0.70710678f));
}

/* The slope of gelu. */
CURVE EACH_NAME(curve_gelu_slope)(eight v)
{
    eight density = EACH_NAME(curve_exp)(-0.5f * v * v) * 0.39894228f;
    return 0.5f * (1.0f + EACH_NAME(curve_erf)(v * 0.70710678f)) + v * density;
}

CURVE EACH_NAME(curve_silu)(eight v)
{
    return v / (1.0f + EACH_NAME(curve_exp)(-v));
}
#undef CURVE
