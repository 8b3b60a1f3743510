/* orient.c: sign of a 2 x 2 determinant of differences: first in doubles with an error bound, and
 * where that cannot tell, as an exact sum of doubles (expansions; Shewchuk 1997). */
#include "annotation/orient.h"

#include <float.h>
#include <math.h>

#define TERMS 16 /* two products of two differences, each difference two doubles */

struct expansion {
    double part[TERMS]; /* non-overlapping, smallest first; the exact sum is the value */
    int n;
};

/* a + b == *high + *low, exactly. */
static void two_sum(double a, double b, double *high, double *low)
{
    double sum = a + b;
    double b_part = sum - a;
    double a_part = sum - b_part;
    *high = sum;
    *low = (a - a_part) + (b - b_part);
}

static void add(struct expansion *sum, double term)
{
    for (int i = 0; i < sum->n; i++)
        two_sum(term, sum->part[i], &term, &sum->part[i]);
    sum->part[sum->n++] = term;
}

/* Adds sign * (a - b) * (c - d), exactly. */
static void add_product(struct expansion *sum, double sign, double a, double b, double c, double d)
{
    double left[2], right[2];
    two_sum(a, -b, &left[0], &left[1]);
    two_sum(c, -d, &right[0], &right[1]);
    for (int i = 1; i >= 0; i--)
        for (int k = 1; k >= 0; k--) {
            double product = left[i] * right[k];
            add(sum, sign * fma(left[i], right[k], -product));
            add(sum, sign * product);
        }
}

int orient(double ax, double ay, double bx, double by, double px, double py)
{
    double left = (bx - ax) * (py - ay), right = (by - ay) * (px - ax);
    double determinant = left - right;
    /* each product is off by at most three roundings, the difference by one more */
    double bound = 2 * DBL_EPSILON * (fabs(left) + fabs(right));
    if (determinant > bound)
        return 1;
    if (determinant < -bound)
        return -1;
    struct expansion sum = { .n = 0 };
    add_product(&sum, 1, bx, ax, py, ay);
    add_product(&sum, -1, by, ay, px, ax);
    for (int i = sum.n - 1; i >= 0; i--)
        if (sum.part[i] != 0)
            return sum.part[i] > 0 ? 1 : -1;
    return 0;
}
