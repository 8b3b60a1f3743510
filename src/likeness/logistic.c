/* logistic.c: see logistic.h. Minimised by L-BFGS: the last few steps and changes of the gradient
 * stand for the curvature (Nocedal and Wright, algorithm 7.4), with steps halved until the loss
 * falls. */
#include "likeness/logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/products.h"

#define HISTORY 12
#define MOST_STEPS 2000
#define MOST_HALVINGS 40
#define SMALL_GRADIENT 1e-9 /* of the mean loss */

/* A point is [d + 1]: the weights, then the intercept. */
struct problem {
    double *x; /* [n, d], standardised */
    const bool *positive;
    int64_t n, d;
    double penalty; /* of |w|^2 / 2, relative to the mean loss */
};

/* log(1 + exp(-m)) without overflow. */
static double softplus(double m)
{
    return m > 0 ? log1p(exp(-m)) : log1p(exp(m)) - m;
}

/* The mean loss at a point, and its gradient [d + 1]. */
static double loss_at(const struct problem *p, const double *point, double *gradient)
{
    double loss = 0, share = 1 / (double)p->n;
    memset(gradient, 0, (size_t)(p->d + 1) * sizeof *gradient);
    for (int64_t i = 0; i < p->n; i++) {
        const double *x = p->x + i * p->d;
        double sign = p->positive[i] ? 1 : -1;
        double margin = sign * (product_dot(x, point, p->d) + point[p->d]);
        double slope = -sign * share / (1 + exp(margin));
        loss += share * softplus(margin);
        product_add(slope, x, p->d, gradient);
        gradient[p->d] += slope;
    }
    product_add(p->penalty, point, p->d, gradient);
    return loss + p->penalty * product_dot(point, point, p->d) / 2;
}

struct descent {
    int64_t size;                         /* d + 1 */
    double *point, *gradient, *direction; /* [size] */
    double *next, *next_gradient;
    double *steps, *changes; /* [HISTORY, size], a ring */
    double curvature[HISTORY];
    int64_t n_kept; /* in all */
    double loss;
};

/* direction = -(inverse curvature) gradient, as the last steps say. */
static void find_direction(struct descent *descent)
{
    int64_t size = descent->size, n = descent->n_kept, first = n > HISTORY ? n - HISTORY : 0;
    double shares[HISTORY], *direction = descent->direction;
    for (int64_t i = 0; i < size; i++)
        direction[i] = -descent->gradient[i];
    for (int64_t k = n - 1; k >= first; k--) {
        int64_t at = k % HISTORY;
        shares[at] =
            product_dot(descent->steps + at * size, direction, size) / descent->curvature[at];
        product_add(-shares[at], descent->changes + at * size, size, direction);
    }
    if (n > 0) {
        const double *last = descent->changes + (n - 1) % HISTORY * size;
        double scale = descent->curvature[(n - 1) % HISTORY] / product_dot(last, last, size);
        for (int64_t i = 0; i < size; i++)
            direction[i] *= scale;
    }
    for (int64_t k = first; k < n; k++) {
        int64_t at = k % HISTORY;
        double share =
            product_dot(descent->changes + at * size, direction, size) / descent->curvature[at];
        product_add(shares[at] - share, descent->steps + at * size, size, direction);
    }
}

/* Goes along the direction; false if the loss does not fall any more. */
static bool step(const struct problem *problem, struct descent *descent)
{
    int64_t size = descent->size;
    double slope = product_dot(descent->gradient, descent->direction, size), length = 1;
    for (int i = 0; i < MOST_HALVINGS; i++, length /= 2) {
        memcpy(descent->next, descent->point, (size_t)size * sizeof *descent->next);
        product_add(length, descent->direction, size, descent->next);
        double loss = loss_at(problem, descent->next, descent->next_gradient);
        if (!(loss <= descent->loss + 1e-4 * length * slope))
            continue;
        int64_t at = descent->n_kept % HISTORY;
        double *moved = descent->steps + at * size, *changed = descent->changes + at * size;
        for (int64_t k = 0; k < size; k++) {
            moved[k] = descent->next[k] - descent->point[k];
            changed[k] = descent->next_gradient[k] - descent->gradient[k];
        }
        descent->curvature[at] = product_dot(moved, changed, size);
        descent->n_kept++;
        memcpy(descent->point, descent->next, (size_t)size * sizeof *moved);
        memcpy(descent->gradient, descent->next_gradient, (size_t)size * sizeof *moved);
        descent->loss = loss;
        return descent->curvature[at] > 1e-300; /* else nothing changes any more */
    }
    return false;
}

static double largest(const double *values, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(values[i]));
    return most;
}

/* point [d + 1] */
static bool minimise(const struct problem *problem, double *point, struct err *err)
{
    int64_t size = problem->d + 1;
    double *memory = calloc((size_t)(size * (5 + 2 * HISTORY)), sizeof *memory);
    if (!memory)
        return err_memory(err, "a logistic regression");
    struct descent descent = { .size = size,
                               .point = memory,
                               .gradient = memory + size,
                               .direction = memory + 2 * size,
                               .next = memory + 3 * size,
                               .next_gradient = memory + 4 * size,
                               .steps = memory + 5 * size,
                               .changes = memory + (5 + HISTORY) * size };
    descent.loss = loss_at(problem, descent.point, descent.gradient);
    for (int i = 0; i < MOST_STEPS && largest(descent.gradient, size) > SMALL_GRADIENT; i++) {
        find_direction(&descent);
        if (!step(problem, &descent))
            break;
    }
    memcpy(point, descent.point, (size_t)size * sizeof *point);
    free(memory);
    return true;
}

static void find_scale(const struct rows *rows, struct logistic *out)
{
    double n = (double)rows->n;
    for (int64_t j = 0; j < rows->d; j++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < rows->n; i++)
            mean += rows->values[i * rows->d + j] / n;
        for (int64_t i = 0; i < rows->n; i++) {
            double apart = rows->values[i * rows->d + j] - mean;
            variance += apart * apart / n;
        }
        out->mean[j] = mean;
        out->std[j] = sqrt(variance) > 1e-12 * (1 + fabs(mean)) ? sqrt(variance) : INFINITY;
    }
}

bool logistic_fit(const struct rows *rows, const bool *positive, double c, bool standardise,
                  struct logistic *out, struct err *err)
{
    int64_t n = rows->n, d = rows->d, positives = 0;
    for (int64_t i = 0; i < n; i++)
        positives += positive[i];
    if (positives == 0 || positives == n)
        return err_set(err, ERR_MISSING, "a logistic regression needs patches of both kinds");
    *out = (struct logistic){ .d = d,
                              .weights = calloc((size_t)d + 1, sizeof(double)),
                              .mean = calloc((size_t)d, sizeof(double)),
                              .std = calloc((size_t)d, sizeof(double)) };
    struct problem problem = { malloc((size_t)(n * d) * sizeof(double)), positive, n, d,
                               1 / (c * (double)n) };
    bool ok = (out->weights && out->mean && out->std && problem.x) ||
              err_memory(err, "a logistic regression");
    for (int64_t j = 0; ok && j < d; j++)
        out->std[j] = 1;
    if (ok && standardise)
        find_scale(rows, out);
    for (int64_t i = 0; ok && i < n * d; i++)
        problem.x[i] = (rows->values[i] - out->mean[i % d]) / out->std[i % d];
    ok = ok && minimise(&problem, out->weights, err);
    if (ok)
        out->intercept = out->weights[d];
    free(problem.x);
    if (!ok)
        logistic_free(out);
    return ok;
}

double logistic_score(const struct logistic *logistic, const double *row)
{
    double score = logistic->intercept;
    for (int64_t j = 0; j < logistic->d; j++)
        score += logistic->weights[j] * (row[j] - logistic->mean[j]) / logistic->std[j];
    return score;
}

void logistic_free(struct logistic *logistic)
{
    free(logistic->weights);
    free(logistic->mean);
    free(logistic->std);
    *logistic = (struct logistic){ 0 };
}
