/* embedding.h: rows of a table by their numbers, and the biases of attention by the distance of two
 * tokens (T5); forward and backward. Results do not depend on threads. */
#ifndef NET_KERNELS_EMBEDDING_H
#define NET_KERNELS_EMBEDDING_H
#include <stdint.h>

struct embedding {
    int64_t count, rows, width; /* ids [count], table [rows, width] */
    int threads;
};

/* The first id, rounded to a whole number, that is no row; -1: all are. */
int64_t embedding_bad(const struct embedding *e, const float *ids);
/* y [count, width]; ids must be good. */
void embedding_run(const struct embedding *e, const float *ids, const float *table, float *y);
/* Adds dy [count, width] to the rows of dtable. */
void embedding_back(const struct embedding *e, const float *ids, const float *dy, float *dtable);

struct relative_bias {
    int64_t tokens, buckets, heads; /* table [buckets, heads] */
    int64_t distance;               /* from which on all distances have one bucket */
};

/* The bucket of a key that is `offset` tokens behind a query: half of them for keys behind it; of
 * each half, half for distances 0, 1, .. and the others for growing ranges up to `distance`. */
int64_t relative_bucket(const struct relative_bias *b, int64_t offset);
/* y [heads, tokens (queries), tokens (keys)] */
void relative_bias_run(const struct relative_bias *b, const float *table, float *y);
/* Adds dy to dtable. */
void relative_bias_back(const struct relative_bias *b, const float *dy, float *dtable);
#endif
