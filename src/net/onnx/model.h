/* model.h: an ONNX file as the messages of its schema. */
#ifndef NET_ONNX_MODEL_H
#define NET_ONNX_MODEL_H
#include <onnx.pb-c.h>
#include "base/err.h"

#define ONNX_SIZE_LIMIT ((size_t)1 << 31)
/* Keys of the metadata. */
#define ONNX_CONFIG_KEY "config.json"
#define ONNX_LAYERS_KEY "microtome.layers"

/* Checks the bytes against the schema (lengths, nesting, number of messages), unpacks them, and
 * checks what any use of a model needs: a graph, no data in other files, no functions defined by
 * the model. *out is the caller's; free with onnx__model_proto__free_unpacked(model, NULL). */
bool onnx_model_parse(const uint8_t *bytes, size_t size, const char *path, Onnx__ModelProto **out,
                      struct err *err);

/* The version of the standard operators; 0 if the model names none. */
int64_t onnx_model_opset(const Onnx__ModelProto *model);

/* A message of any type from untrusted bytes, e.g. a TensorProto of the test data; NULL with an
 * error. */
ProtobufCMessage *onnx_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                              size_t size, const char *path, struct err *err);
#endif
