/* model.c: unpacks an ONNX file safely. protobuf-c recurses into nested messages without a limit,
 * merges a message that occurs twice, and allocates for every empty message: so the bytes are
 * checked against the schema before it sees them. */
#include "net/onnx/model.h"
#include <string.h>

#define DEPTH_LIMIT 24
/* A network of 20000 nodes has some 300000 messages; one takes up to 300 bytes of memory. */
#define MESSAGE_LIMIT 500000
#define ENTRY_LIMIT 2000000

struct walk {
    const uint8_t *at, *end;
};

struct budget {
    const char *path;
    int64_t messages, entries;
    struct err *err;
};

static bool damaged(struct budget *budget, const char *fact)
{
    return err_set(budget->err, ERR_FORMAT, "%s: not an ONNX file, or damaged: %s", budget->path,
                   fact);
}

static bool read_varint(struct walk *walk, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (walk->at == walk->end)
            return false;
        uint8_t byte = *walk->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* Passes one field's content; a length-delimited one is given in *inside. */
static bool pass_field(struct walk *walk, unsigned wire_type, struct walk *inside)
{
    uint64_t value;
    size_t left;
    *inside = (struct walk){ NULL, NULL };
    switch (wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return read_varint(walk, &value);
    case PROTOBUF_C_WIRE_TYPE_64BIT:
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        left = wire_type == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
        if ((size_t)(walk->end - walk->at) < left)
            return false;
        walk->at += left;
        return true;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!read_varint(walk, &value) || value > (size_t)(walk->end - walk->at))
            return false;
        *inside = (struct walk){ walk->at, walk->at + value };
        walk->at += value;
        return true;
    default:
        return false;
    }
}

static bool check_message(const ProtobufCMessageDescriptor *type, struct walk walk, int depth,
                          struct budget *budget)
{
    uint64_t seen = 0;
    if (depth > DEPTH_LIMIT)
        return damaged(budget, "messages are nested too deeply");
    if (--budget->messages < 0)
        return damaged(budget, "too many messages");
    while (walk.at < walk.end) {
        uint64_t tag;
        struct walk inside;
        if (!read_varint(&walk, &tag) || tag >> 3 == 0 || tag >> 3 > 1u << 29 ||
            !pass_field(&walk, tag & 7, &inside))
            return damaged(budget, "a length or a number is out of range");
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        if (!field)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED && --budget->entries < 0)
            return damaged(budget, "too many entries");
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (!inside.at)
            return damaged(budget, "a message has the wrong type");
        size_t place = (size_t)(field - type->fields);
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            if (seen >> place & 1)
                return damaged(budget, "a field that may occur once occurs twice");
            seen |= (uint64_t)1 << place;
        }
        if (!check_message(field->descriptor, inside, depth + 1, budget))
            return false;
    }
    return true;
}

ProtobufCMessage *onnx_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                              size_t size, const char *path, struct err *err)
{
    int64_t messages = 1000 + (int64_t)(size / 4); /* shorter ones say nothing */
    struct budget budget = { path, messages < MESSAGE_LIMIT ? messages : MESSAGE_LIMIT, ENTRY_LIMIT,
                             err };
    if (size > ONNX_SIZE_LIMIT) {
        err_set(err, ERR_FORMAT, "%s: larger than 2 GB", path);
        return NULL;
    }
    if (size == 0) {
        damaged(&budget, "it is empty");
        return NULL;
    }
    if (!check_message(type, (struct walk){ bytes, bytes + size }, 0, &budget))
        return NULL;
    ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, size, bytes);
    if (!message)
        damaged(&budget, "it does not follow the schema");
    return message;
}

int64_t onnx_model_opset(const Onnx__ModelProto *model)
{
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = model->opset_import[i];
        if (!set->domain || !*set->domain || strcmp(set->domain, "ai.onnx") == 0)
            return set->version;
    }
    return 0;
}

static bool check_model(const Onnx__ModelProto *model, const char *path, struct err *err)
{
    if (!model->graph)
        return err_set(err, ERR_FORMAT, "%s: not an ONNX model: it has no graph", path);
    if (model->n_functions)
        return err_set(err, ERR_FORMAT,
                       "%s: the model defines its own functions, which are not supported; export "
                       "it with standard operators",
                       path);
    if (model->graph->n_sparse_initializer)
        return err_set(err, ERR_FORMAT, "%s: sparse weights are not supported", path);
    return true;
}

bool onnx_model_parse(const uint8_t *bytes, size_t size, const char *path, Onnx__ModelProto **out,
                      struct err *err)
{
    ProtobufCMessage *message = onnx_unpack(&onnx__model_proto__descriptor, bytes, size, path, err);
    if (!message)
        return false;
    Onnx__ModelProto *model = (Onnx__ModelProto *)(void *)message;
    if (!check_model(model, path, err)) {
        onnx__model_proto__free_unpacked(model, NULL);
        return false;
    }
    *out = model;
    return true;
}
