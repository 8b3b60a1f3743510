/* quadrature.h: Gauss-Legendre quadrature. */
#ifndef EXPLAIN_QUADRATURE_H
#define EXPLAIN_QUADRATURE_H
#include <stdint.h>

/* Nodes and weights [n] on [0, 1], nodes in ascending order. */
void quadrature(int64_t n, double *nodes, double *weights);
#endif
