/* host.h: tensors whose elements are known at import: initializers, constants and what is computed
 * from them. Integers of any width and booleans are int64_t, everything else is float. */
#ifndef NET_ONNX_HOST_H
#define NET_ONNX_HOST_H
#include <onnx.pb-c.h>
#include "net/graph/tensor.h"

enum host_type { HOST_FLOAT, HOST_INT };

struct host {
    enum host_type type;
    struct shape shape; /* extents may be 0 */
    int64_t count;
    union {
        float *floats;
        int64_t *ints;
    };
    int element;        /* ONNX's type of its elements, if the file says so; 0: unknown */
    const char *origin; /* the initializer it is, unchanged or transposed; NULL: computed */
    bool transposed;    /* it is the matrix `origin` transposed */
    bool from_shape;    /* depends on the shape of an activation */
};

/* Zeroed elements; the caller's, free with host_free. Shape extents >= 0; NULL with an error if the
 * count would exceed `limit`. */
struct host *host_new(enum host_type type, struct shape shape, int64_t limit, struct err *err);
void host_free(struct host *host);
/* Decodes a tensor of the file; the length of its data must match its shape. */
struct host *host_from_proto(const Onnx__TensorProto *tensor, struct err *err);

/* Element i as a number. */
static inline double host_number(const struct host *host, int64_t i)
{
    return host->type == HOST_FLOAT ? (double)host->floats[i] : (double)host->ints[i];
}
/* Element i as a float. */
static inline float host_float(const struct host *host, int64_t i)
{
    return host->type == HOST_FLOAT ? host->floats[i] : (float)host->ints[i];
}
#endif
