/* tensor.h: shapes, and plain float tensors (row-major, no gaps), as used outside a plan. Inside a
 * plan tensors may have blocked layouts, which are invisible outside. */
#ifndef NET_GRAPH_TENSOR_H
#define NET_GRAPH_TENSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define SHAPE_DIMS 6

/* The extent along every axis, outermost first: images are [N, C, H, W]. rank 0 is a scalar. */
struct shape {
    int rank;
    int64_t dim[SHAPE_DIMS]; /* entries from rank on are 0 */
};

/* SHAPE(8, 3, 224, 224) */
#define SHAPE(...)                                                                                 \
    ((struct shape){ (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })

/* Elements; 1 for a scalar. The shape must have passed shape_check. */
int64_t shape_count(const struct shape *shape);
/* Elements of the axes [from, to). */
int64_t shape_span(const struct shape *shape, int from, int to);
bool shape_equal(const struct shape *a, const struct shape *b);
/* Every extent >= 1, rank within SHAPE_DIMS, and the bytes of the floats far below overflow (2^40
 * elements). `what` starts the message. */
bool shape_check(const struct shape *shape, const char *what, struct err *err);
/* The shape that a and b broadcast to (as numpy does); false if they do not. */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out);

/* How the elements of a tensor are kept. */
enum dtype { DTYPE_FLOAT32, DTYPE_BFLOAT16, DTYPE_INT8, DTYPES };

/* The same with what int8 needs: an element is scale (stored - zero_point). Of other types scale
 * and zero_point are 0. */
struct storage {
    enum dtype dtype;
    float scale;
    int64_t zero_point;
};

/* Ends with NULL. */
extern const char *const dtype_names[DTYPES + 1];
size_t dtype_bytes(enum dtype dtype);
bool storage_equal(const struct storage *a, const struct storage *b);

/* Room for any shape as text. */
#define SHAPE_TEXT (SHAPE_DIMS * 21 + 3)
/* "[8, 3, 224, 224]"; returns text. */
const char *shape_text(const struct shape *shape, char text[SHAPE_TEXT]);

/* Reference-counted floats, so that graphs derived from one another share what they do not change.
 * Aligned to 64 bytes. */
struct buffer;

/* Zeroed; NULL if no memory. One user. */
struct buffer *buffer_new(int64_t count);
/* The same, but not zeroed: write every float before reading it. */
struct buffer *buffer_new_unset(int64_t count);
/* One more user; returns the buffer. Thread-safe. */
struct buffer *buffer_share(struct buffer *buffer);
/* One user fewer; freed with the last. NULL-safe, thread-safe. */
void buffer_release(struct buffer *buffer);
float *buffer_data(const struct buffer *buffer);
#endif
