/* curves.h: functions of registers of floats as plain sums and products. Included by loops for each
 * instruction set, with EACH_TARGET and EACH_NAME(name): hence no guard. NaN stays NaN. */
#define CURVE static inline __attribute__((always_inline, unused)) EACH_TARGET reg

/* e^v, to 2.4e-7 of it, for v within +-87; beyond it is that of +-87. The exponent is that of
 * 1.5 * 2^23 + v / ln 2, whose last bits are the next integer. */
CURVE EACH_NAME(curve_exp)(reg v)
{
    const reg magic = REG_ALL(12582912.0f);
    v = REG_WHERE(v > 87.0f, REG_ALL(87.0f), v);
    v = REG_WHERE(v < -87.0f, REG_ALL(-87.0f), v);
    reg t = v * 1.44269504f + magic, n = t - magic;
    reg r = v - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    reg e = 1.0f / 720 * r + 1.0f / 120;
    e = e * r + 1.0f / 24;
    e = e * r + 1.0f / 6;
    e = e * r + 0.5f;
    e = (e * r) * r + r + 1.0f;
    reg_bits power = ((reg_bits)t - (reg_bits)magic) << 23;
    return (reg)((reg_bits)e + power);
}

/* The share of a normal distribution below v, to 3e-7: 1/2 and an odd quotient of polynomials
 * (least largest error within +-5.54, 8e-9 before rounding), beyond which it is 0 or 1 in float. */
CURVE EACH_NAME(curve_normal)(reg v)
{
    v = REG_WHERE(v > 5.54f, REG_ALL(5.54f), v);
    v = REG_WHERE(v < -5.54f, REG_ALL(-5.54f), v);
    reg s = v * v;
    reg above = s * 2.24808225e-08f + 6.35246438e-06f;
    above = above * s + 1.70958268e-04f;
    above = above * s + 4.68993304e-03f;
    above = above * s + 3.40762617e-02f;
    above = above * s + 3.98942218e-01f;
    reg below = s * 1.18970706e-06f + 7.42574413e-05f;
    below = below * s + 1.89654121e-03f;
    below = below * s + 2.87711955e-02f;
    below = below * s + 2.52082348e-01f;
    below = below * s + 1.0f;
    reg share = v * above / below + 0.5f;
    return REG_WHERE(share < 0, REG_ALL(0.0f), share); /* by rounding */
}

CURVE EACH_NAME(curve_gelu)(reg v)
{
    return v * EACH_NAME(curve_normal)(v);
}

CURVE EACH_NAME(curve_silu)(reg v)
{
    return v / (1.0f + EACH_NAME(curve_exp)(-v));
}
#undef CURVE
