/* test_privacy.c: the privacy accountants against the table of the reference and against other
 * programs, and what must hold for any of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include "privacy/accountant.h"
#include "privacy/fft.h"
#include "support/golden_json.h"

#define MNIST (256.0 / 60000)

struct row {
    struct privacy_cost cost;
    double rdp, classic, prv;
};

static const struct row table[] = {
    { { 1.1, MNIST, 14062, 1e-5 }, 2.5965559, 3.008272, 2.3816 },
    { { 1.1, MNIST, 234, 1e-5 }, 0.7402343, 1.034023, 0.3065 },
    { { 1.3, MNIST, 3515, 1e-5 }, 0.9544295, 1.192130, 0.8644 },
    { { 0.7, MNIST, 10546, 1e-5 }, 6.3181006, 7.100268, 5.6394 },
    { { 1.3, 0.0025, 6000, 1e-5 }, 0.7242234, 0.941871, 0.6400 },
    { { 1.0, 0.001, 30000, 1e-7 }, 1.4154988, 1.709287, 1.0977 },
    { { 1.5, 0.04, 2250, 1e-5 }, 7.3291112, 8.073848, 6.7688 },
    { { 1.0, 1, 1, 1e-5 }, 4.7285071, 5.298526, 4.3772 },
};
#define ROWS (sizeof table / sizeof *table)

static void renyi_epsilon_is_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(fabs(privacy_epsilon_rdp(&table[i].cost) - table[i].rdp) < 1e-6);
        assert_true(fabs(privacy_epsilon_rdp_classic(&table[i].cost) - table[i].classic) < 1e-6);
    }
}

/* Orders that are whole are summed in another way than those between: both must be one curve. */
static void whole_orders_are_between_their_neighbours(void **state)
{
    (void)state;
    for (double sigma = 0.5; sigma < 5; sigma *= 1.7)
        for (double rate = 1e-4; rate < 1; rate *= 7)
            for (int alpha = 2; alpha < 11; alpha++) {
                double below = privacy_rdp(sigma, rate, alpha - 1e-6);
                double at = privacy_rdp(sigma, rate, alpha);
                double above = privacy_rdp(sigma, rate, alpha + 1e-6);
                assert_true(fabs((below + above) / 2 - at) < 1e-9 + 1e-6 * at);
            }
}

static void more_noise_costs_less_and_more_steps_more(void **state)
{
    (void)state;
    struct privacy_cost cost = { 0.6, 0.01, 1000, 1e-5 };
    double last = INFINITY;
    for (; cost.sigma < 20; cost.sigma *= 1.2) {
        double epsilon = privacy_epsilon_rdp(&cost);
        assert_true(epsilon < last);
        last = epsilon;
    }
    cost = (struct privacy_cost){ 1.1, 0.01, 0, 1e-5 };
    assert_true(privacy_epsilon_rdp(&cost) == 0);
    last = 0;
    for (cost.steps = 1; cost.steps < 1000000; cost.steps *= 3) {
        double epsilon = privacy_epsilon_rdp(&cost);
        assert_true(epsilon > last);
        last = epsilon;
    }
}

static void noise_for_an_epsilon_keeps_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        double sigma = 0, epsilon = 0;
        struct err err = { 0 };
        struct privacy_cost cost = table[i].cost;
        assert_true(privacy_sigma(PRIVACY_RDP, table[i].rdp + 1e-6, &cost, &sigma, &err));
        assert_true(fabs(sigma / cost.sigma - 1) < 1.1e-4);
        cost.sigma = sigma;
        assert_true(privacy_epsilon(PRIVACY_RDP, &cost, &epsilon, &err));
        assert_true(epsilon <= table[i].rdp + 1e-6);
    }
}

static void steps_for_an_epsilon_are_the_most(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        int64_t steps = -1;
        struct err err = { 0 };
        assert_true(privacy_steps(PRIVACY_RDP_CLASSIC, table[i].classic + 1e-6, &table[i].cost,
                                  &steps, &err));
        assert_int_equal(steps, table[i].cost.steps);
    }
    int64_t steps = -1;
    struct privacy_cost loud = { 0.3, 1, 5, 1e-5 };
    struct err err = { 0 };
    assert_true(privacy_steps(PRIVACY_RDP, 1, &loud, &steps, &err));
    assert_int_equal(steps, 0);
}

static void bad_numbers_are_named(void **state)
{
    (void)state;
    static const struct {
        struct privacy_cost cost;
        const char *text;
    } cases[] = {
        { { 0, 0.1, 1, 1e-5 }, "sigma is 0; the noise must be above 0" },
        { { 1, 1.5, 1, 1e-5 },
          "rate is 1.5; it is the share of the samples in a batch on average, above 0 and at "
          "most 1" },
        { { 1, 0.1, -1, 1e-5 }, "steps are -1; they cannot be below 0" },
        { { 1, 0.1, 1, 0 }, "delta is 0; it must be between 0 and 1, and well below 1 / samples" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = { 0 };
        assert_false(privacy_check(&cases[i].cost, &err));
        assert_string_equal(err.text, cases[i].text);
    }
    struct err err = { 0 };
    double sigma;
    assert_false(privacy_sigma(PRIVACY_RDP, 0.01, &table[0].cost, &sigma, &err));
    assert_string_equal(err.text, "no noise gives epsilon 0.01 at delta 1e-05 by this accountant; "
                                  "take a larger epsilon or delta, or the PRV accountant");
}

static void composed_epsilon_is_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        double epsilon = 0, bound = 0;
        struct err err = { 0 };
        assert_true(privacy_epsilon_prv(&table[i].cost, &epsilon, &err));
        assert_true(fabs(epsilon - table[i].prv) < 1e-2);
        assert_true(privacy_epsilon(PRIVACY_PRV, &table[i].cost, &bound, &err));
        assert_true(bound >= epsilon + PRIVACY_PRV_ERROR && bound <= epsilon + 0.0105);
    }
}

static struct privacy_cost golden_cost(const json_t *item)
{
    return (struct privacy_cost){ .sigma = golden_number(item, "sigma", 0),
                                  .rate = golden_number(item, "rate", 0),
                                  .steps = (int64_t)golden_number(item, "steps", 0),
                                  .delta = golden_number(item, "delta", 0) };
}

static void other_programs_agree(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/privacy.json"), *item;
    size_t i;
    json_array_foreach(json_object_get(golden, "costs"), i, item)
    {
        struct privacy_cost cost = golden_cost(item);
        double epsilon = 0, pld = golden_number(item, "pld", 0);
        struct err err = { 0 };
        assert_true(privacy_epsilon_prv(&cost, &epsilon, &err));
        assert_true(fabs(epsilon - golden_number(item, "prv", 0)) < 2e-3);
        assert_true(fabs(epsilon - pld) < 2e-3 + 1e-2 * (pld < 0.1));
        assert_true(epsilon < privacy_epsilon_rdp(&cost));
    }
    json_array_foreach(json_object_get(golden, "orders"), i, item)
    {
        double got = privacy_rdp(golden_number(item, "sigma", 0), golden_number(item, "rate", 0),
                                 golden_number(item, "alpha", 0));
        double want = golden_number(item, "renyi", 0);
        char what[64];
        snprintf(what, sizeof what, "order %zu", i);
        assert_near(got / want, 1, 1e-7, what);
    }
    json_decref(golden);
}

/* delta of the Gaussian mechanism, exactly (Balle and Wang 2018). */
static double gaussian_delta(double sigma, double epsilon)
{
    double a = 1 / (2 * sigma), b = epsilon * sigma;
    return 0.5 * erfc((b - a) / M_SQRT2) - exp(epsilon) * 0.5 * erfc((b + a) / M_SQRT2);
}

static void the_plain_gaussian_is_exact(void **state)
{
    (void)state;
    static const struct privacy_cost costs[] = {
        { 1, 1, 1, 1e-5 }, { 5, 1, 100, 1e-5 }, { 40, 1, 1000, 1e-9 }, { 0.5, 1, 3, 1e-4 }
    };
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        double epsilon = 0, sigma = costs[i].sigma / sqrt((double)costs[i].steps);
        struct err err = { 0 };
        assert_true(privacy_epsilon_prv(&costs[i], &epsilon, &err));
        assert_near(gaussian_delta(sigma, epsilon) / costs[i].delta, 1, 1e-3, "delta");
    }
}

static void composed_noise_for_an_epsilon_keeps_it(void **state)
{
    (void)state;
    static const double targets[] = { 0.2, 1, 8 };
    for (int i = 0; i < 3; i++) {
        struct privacy_cost cost = { .rate = 0.01, .steps = 500, .delta = 1e-5 };
        double epsilon = 0, rdp = 0;
        struct err err = { 0 };
        assert_true(privacy_sigma(PRIVACY_PRV, targets[i], &cost, &cost.sigma, &err));
        assert_true(privacy_epsilon_prv(&cost, &epsilon, &err));
        assert_true(epsilon <= targets[i] - PRIVACY_PRV_ERROR);
        assert_true(epsilon > targets[i] - PRIVACY_PRV_ERROR - 5e-3 * targets[i]);
        assert_true(privacy_sigma(PRIVACY_RDP, targets[i], &cost, &rdp, &err));
        assert_true(cost.sigma < rdp);
    }
}

static void too_much_is_refused(void **state)
{
    (void)state;
    struct privacy_cost cost = { 1, 0.001, 10000000, 1e-6 };
    double epsilon;
    struct err err = { 0 };
    assert_false(privacy_epsilon_prv(&cost, &epsilon, &err));
    assert_string_equal(err.text, "sigma 1, rate 0.001, 10000000 steps: more than the PRV "
                                  "accountant can hold; use epsilon by RDP (29.16)");
    cost = (struct privacy_cost){ 1, 0.001, 1000, 1e-13 };
    assert_false(privacy_epsilon_prv(&cost, &epsilon, &err));
    assert_string_equal(err.text, "delta is 1e-13; the PRV accountant needs at least 1e-11: use "
                                  "epsilon by RDP");
}

static void transform_is_the_sum_it_stands_for(void **state)
{
    (void)state;
    enum { N = 64 };
    struct fft_number x[N], was[N];
    struct fft fft;
    struct err err = { 0 };
    assert_true(fft_new(N, &fft, &err));
    for (int i = 0; i < N; i++)
        was[i] = x[i] = (struct fft_number){ sin(1.3 * i * i), cos(0.7 * i) };
    fft_forward(&fft, x);
    for (size_t p = 0; p < N; p++) {
        size_t k = 0;
        for (size_t bit = 0; bit < 6; bit++)
            k |= (p >> bit & 1) << (5 - bit);
        struct fft_number sum = { 0, 0 };
        for (size_t i = 0; i < N; i++) {
            double angle = -2 * M_PI * (double)(i * k % N) / N;
            sum.re += was[i].re * cos(angle) - was[i].im * sin(angle);
            sum.im += was[i].re * sin(angle) + was[i].im * cos(angle);
        }
        assert_near(x[p].re, sum.re, 1e-13, "real part");
        assert_near(x[p].im, sum.im, 1e-13, "imaginary part");
    }
    fft_backward(&fft, x);
    for (int i = 0; i < N; i++) {
        assert_near(x[i].re, was[i].re, 1e-14, "real part");
        assert_near(x[i].im, was[i].im, 1e-14, "imaginary part");
    }
    fft_free(&fft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renyi_epsilon_is_the_table),
        cmocka_unit_test(composed_epsilon_is_the_table),
        cmocka_unit_test(other_programs_agree),
        cmocka_unit_test(the_plain_gaussian_is_exact),
        cmocka_unit_test(composed_noise_for_an_epsilon_keeps_it),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(transform_is_the_sum_it_stands_for),
        cmocka_unit_test(whole_orders_are_between_their_neighbours),
        cmocka_unit_test(more_noise_costs_less_and_more_steps_more),
        cmocka_unit_test(noise_for_an_epsilon_keeps_it),
        cmocka_unit_test(steps_for_an_epsilon_are_the_most),
        cmocka_unit_test(bad_numbers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
