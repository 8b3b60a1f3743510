/* external.h: weights of an ONNX file that are in other files beside it (external data). */
#ifndef NET_ONNX_EXTERNAL_H
#define NET_ONNX_EXTERNAL_H
#include <onnx.pb-c.h>
#include "base/err.h"

struct onnx_external;

/* Maps the files that the initializers of `graph` name, and lets raw_data of these initializers
 * point into them: nothing is copied. A file must be in the folder of `path` or below it, without
 * "..", and neither it nor a folder on the way may be a symbolic link. All ranges must lie inside
 * their files and not be longer than them together. *out is NULL if there are none; it is the
 * caller's, and goes before the graph is freed. beside false: such weights are refused. */
bool onnx_external_open(Onnx__GraphProto *graph, const char *path, bool beside,
                        struct onnx_external **out, struct err *err);
/* Bytes of all the ranges. */
int64_t onnx_external_bytes(const struct onnx_external *external);
/* The bytes of a tensor have been read: they need not stay in memory, and come from the file again
 * if they are read once more. Nothing, if it is not in one of the files. NULL is allowed. */
void onnx_external_release(const struct onnx_external *external, const Onnx__TensorProto *tensor);
/* Unmaps the files; raw_data of the initializers is empty again. NULL is allowed. */
void onnx_external_close(struct onnx_external *external);
#endif
