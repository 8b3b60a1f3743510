/* pickle.c: the machine: a stack of values, marks, a memo. See pickle.h. */
#include "net/torch/pickle.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_LIMIT ((size_t)1 << 26)

struct machine {
    const uint8_t *bytes;
    size_t size, at;
    const char *path;
    struct err *err;
    struct pickle *pickle;
    uint32_t *stack, *marks, *memo; /* memo: index + 1, 0: empty */
    size_t depth, n_marks, n_memo, next_memo;
    size_t stack_size, marks_size, memo_size;
    size_t n_added; /* items of all containers: copies must not multiply */
};

static bool bad(const struct machine *m, const char *fact)
{
    return err_set(m->err, ERR_FORMAT, "%s: a damaged pickle: %s", m->path, fact);
}

/* Room for one more element of an array that grows; `array` is the address of its pointer. */
static bool grow(struct machine *m, void *array, size_t n, size_t *capacity, size_t each)
{
    if (n < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 16;
    void *old;
    memcpy(&old, array, sizeof old);
    if (larger > VALUES_LIMIT)
        return bad(m, "it has too many values");
    void *moved = reallocarray(old, larger, each);
    if (!moved)
        return err_memory(m->err, m->path);
    memcpy(array, &moved, sizeof moved);
    *capacity = larger;
    return true;
}

static struct pickle_value *value_at(const struct machine *m, uint32_t index)
{
    return &m->pickle->values[index];
}

static bool push(struct machine *m, uint32_t index)
{
    if (!grow(m, &m->stack, m->depth, &m->stack_size, sizeof *m->stack))
        return false;
    m->stack[m->depth++] = index;
    return true;
}

static bool push_value(struct machine *m, struct pickle_value value)
{
    struct pickle *p = m->pickle;
    if (!grow(m, &p->values, p->n_values, &p->capacity, sizeof *p->values))
        return false;
    p->values[p->n_values] = value;
    return push(m, (uint32_t)p->n_values++);
}

static bool push_kind(struct machine *m, enum pickle_kind kind)
{
    return push_value(m, (struct pickle_value){ .kind = kind });
}

static bool push_number(struct machine *m, int64_t number)
{
    return push_value(m, (struct pickle_value){ .kind = PICKLE_INT, .number = number });
}

/* The topmost value above the last mark. */
static bool pop(struct machine *m, uint32_t *out)
{
    size_t floor = m->n_marks ? m->marks[m->n_marks - 1] : 0;
    if (m->depth <= floor)
        return bad(m, "it takes a value that is not there");
    *out = m->stack[--m->depth];
    return true;
}

static bool add_item(struct machine *m, uint32_t container, uint32_t item)
{
    struct pickle_value *value = value_at(m, container);
    if (m->n_added++ > 4 * m->size)
        return bad(m, "it has too many values");
    if (!grow(m, &value->items, value->n_items, &value->capacity, sizeof *value->items))
        return false;
    value->items[value->n_items++] = item;
    return true;
}

/* What is above the last mark becomes items of a container; the mark is removed. */
static bool gather(struct machine *m, uint32_t container)
{
    if (!m->n_marks)
        return bad(m, "a mark is missing");
    size_t from = m->marks[--m->n_marks];
    bool ok = true;
    for (size_t i = from; ok && i < m->depth; i++)
        ok = add_item(m, container, m->stack[i]);
    m->depth = from;
    return ok;
}

/* `bytes` of the pickle. */
static bool take(struct machine *m, uint64_t bytes, const uint8_t **out)
{
    if (bytes > m->size - m->at)
        return bad(m, "it ends in the middle");
    *out = m->bytes + m->at;
    m->at += (size_t)bytes;
    return true;
}

static bool take_number(struct machine *m, int bytes, uint64_t *out)
{
    const uint8_t *at = NULL;
    *out = 0;
    if (!take(m, (uint64_t)bytes, &at))
        return false;
    for (int i = bytes; i-- > 0;)
        *out = *out << 8 | at[i];
    return true;
}

static bool take_line(struct machine *m, const char **out, size_t *length)
{
    const uint8_t *end = memchr(m->bytes + m->at, '\n', m->size - m->at);
    if (!end)
        return bad(m, "it ends in the middle");
    *out = (const char *)m->bytes + m->at;
    *length = (size_t)(end - m->bytes) - m->at;
    m->at += *length + 1;
    return true;
}

static bool push_text(struct machine *m, int length_bytes)
{
    uint64_t length = 0;
    const uint8_t *text = NULL;
    return take_number(m, length_bytes, &length) && take(m, length, &text) &&
           push_value(m, (struct pickle_value){ .kind = PICKLE_TEXT,
                                                .text = (const char *)text,
                                                .length = (size_t)length });
}

/* Little-endian two's complement of any length; more than 64 bits are of no use here. */
static bool push_long(struct machine *m, int length_bytes)
{
    uint64_t length = 0, number = 0;
    const uint8_t *at = NULL;
    if (!take_number(m, length_bytes, &length) || !take(m, length, &at))
        return false;
    if (length && at[length - 1] & 128)
        number = UINT64_MAX;
    for (uint64_t i = length < 8 ? length : 8; i-- > 0;)
        number = number << 8 | at[i];
    return push_number(m, (int64_t)number);
}

static bool same(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

bool pickle_is(const struct pickle_value *value, const char *text)
{
    return value->kind == PICKLE_TEXT && same(value->text, value->length, text);
}

/* What a function that may be named does. */
enum action { MAKE_TENSOR, FIRST_ARGUMENT, MAKE_DICT, MAKE_LIST, MAKE_NONE, NO_CALL, FORBIDDEN };

static enum action action_of(const struct pickle_value *g)
{
    static const struct {
        const char *module, *name;
        enum action action;
    } known[] = {
        { "torch._utils", "_rebuild_tensor_v2", MAKE_TENSOR },
        { "torch._utils", "_rebuild_tensor_v3", MAKE_TENSOR },
        { "torch._utils", "_rebuild_parameter", FIRST_ARGUMENT },
        { "torch._utils", "_rebuild_parameter_with_state", FIRST_ARGUMENT },
        { "torch.jit._pickle", "build_intlist", FIRST_ARGUMENT },
        { "torch.jit._pickle", "build_tensorlist", FIRST_ARGUMENT },
        { "torch.jit._pickle", "build_doublelist", FIRST_ARGUMENT },
        { "torch.jit._pickle", "build_boollist", FIRST_ARGUMENT },
        { "torch.jit._pickle", "restore_type_tag", FIRST_ARGUMENT },
        { "torch", "Size", FIRST_ARGUMENT },
        { "torch", "device", MAKE_NONE },
        { "collections", "OrderedDict", MAKE_DICT },
        { "builtins", "set", MAKE_LIST },
        { "__builtin__", "set", MAKE_LIST },
        { "torch.storage", "UntypedStorage", NO_CALL },
        { "torch", "UntypedStorage", NO_CALL },
    };
    static const char *const types[] = { "float32", "float16", "bfloat16",      "float64",
                                         "int64",   "int32",   "int16",         "int8",
                                         "uint8",   "bool",    "float8_e4m3fn", "float8_e5m2" };
    static const char storage[] = "Storage";
    size_t tail = sizeof storage - 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (same(g->text, g->length, known[i].module) && same(g->text2, g->length2, known[i].name))
            return known[i].action;
    if (g->length >= 9 && memcmp(g->text, "__torch__", 9) == 0 &&
        (g->length == 9 || g->text[9] == '.'))
        return MAKE_DICT;
    if (!same(g->text, g->length, "torch"))
        return FORBIDDEN;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (same(g->text2, g->length2, types[i]))
            return NO_CALL;
    return g->length2 > tail && memcmp(g->text2 + g->length2 - tail, storage, tail) == 0
               ? NO_CALL
               : FORBIDDEN;
}

static bool push_global(struct machine *m, const char *module, size_t module_length,
                        const char *name, size_t name_length)
{
    struct pickle_value value = { .kind = PICKLE_GLOBAL,
                                  .text = module,
                                  .length = module_length,
                                  .text2 = name,
                                  .length2 = name_length };
    if (action_of(&value) == FORBIDDEN)
        return err_set(m->err, ERR_FORMAT,
                       "%s: it wants to use '%.*s.%.*s', and nothing in a file is run; save the "
                       "weights alone: torch.save(model.state_dict(), ..)",
                       m->path, (int)(module_length < 100 ? module_length : 100), module,
                       (int)(name_length < 100 ? name_length : 100), name);
    return push_value(m, value);
}

static bool stack_global(struct machine *m)
{
    uint32_t name, module;
    if (!pop(m, &name) || !pop(m, &module))
        return false;
    const struct pickle_value *n = value_at(m, name), *g = value_at(m, module);
    if (n->kind != PICKLE_TEXT || g->kind != PICKLE_TEXT)
        return bad(m, "the name of a function is not text");
    return push_global(m, g->text, g->length, n->text, n->length);
}

/* function, arguments -> what it makes. */
static bool call(struct machine *m)
{
    uint32_t arguments, function;
    if (!pop(m, &arguments) || !pop(m, &function))
        return false;
    const struct pickle_value *f = value_at(m, function), *a = value_at(m, arguments);
    if (f->kind != PICKLE_GLOBAL || a->kind != PICKLE_TUPLE)
        return bad(m, "it calls something that is no function");
    switch (action_of(f)) {
    case FIRST_ARGUMENT:
        return a->n_items ? push(m, a->items[0]) : bad(m, "a function has no argument");
    case MAKE_DICT:
        return push_value(
            m, (struct pickle_value){ .kind = PICKLE_DICT, .number = f->text[0] == '_' });
    case MAKE_LIST:
        return push_kind(m, PICKLE_LIST);
    case MAKE_NONE:
        return push_kind(m, PICKLE_NONE);
    case MAKE_TENSOR:
        if (!push_value(m, (struct pickle_value){ .kind = PICKLE_TENSOR,
                                                  .number = f->text2[f->length2 - 1] - '0' }))
            return false;
        for (size_t i = 0; i < value_at(m, arguments)->n_items; i++)
            if (!add_item(m, m->stack[m->depth - 1], value_at(m, arguments)->items[i]))
                return false;
        return true;
    default:
        return bad(m, "it calls a type");
    }
}

/* Attributes of a TorchScript object are its items; those of other values are of no use here. */
static bool build(struct machine *m)
{
    uint32_t state, object;
    if (!pop(m, &state) || !pop(m, &object) || !push(m, object))
        return false;
    bool fresh = value_at(m, object)->kind == PICKLE_DICT && !value_at(m, object)->n_items;
    if (value_at(m, state)->kind != PICKLE_DICT || !fresh || state == object)
        return true;
    for (size_t i = 0; i < value_at(m, state)->n_items; i++)
        if (!add_item(m, object, value_at(m, state)->items[i]))
            return false;
    return true;
}

static bool put(struct machine *m, uint64_t slot)
{
    if (!m->depth)
        return bad(m, "it takes a value that is not there");
    if (slot > m->size)
        return bad(m, "its memo is too large");
    while (m->n_memo <= slot) {
        if (!grow(m, &m->memo, m->n_memo, &m->memo_size, sizeof *m->memo))
            return false;
        m->memo[m->n_memo++] = 0;
    }
    m->memo[slot] = m->stack[m->depth - 1] + 1;
    m->next_memo++;
    return true;
}

static bool get(struct machine *m, uint64_t slot)
{
    if (slot >= m->n_memo || !m->memo[slot])
        return bad(m, "it takes a value that is not there");
    return push(m, m->memo[slot] - 1);
}

static bool tuple_of(struct machine *m, int n)
{
    uint32_t items[3];
    for (int i = n; i-- > 0;)
        if (!pop(m, &items[i]))
            return false;
    if (!push_kind(m, PICKLE_TUPLE))
        return false;
    uint32_t tuple = m->stack[m->depth - 1];
    for (int i = 0; i < n; i++)
        if (!add_item(m, tuple, items[i]))
            return false;
    return true;
}

/* MARK items.. -> container; the items above the mark become its own. */
static bool collect(struct machine *m, enum pickle_kind kind)
{
    struct pickle *p = m->pickle;
    if (!grow(m, &p->values, p->n_values, &p->capacity, sizeof *p->values))
        return false;
    uint32_t container = (uint32_t)p->n_values++;
    p->values[container] = (struct pickle_value){ .kind = kind };
    return gather(m, container) && push(m, container);
}

/* container MARK items.. -> container */
static bool extend(struct machine *m, enum pickle_kind kind)
{
    size_t mark = m->n_marks ? m->marks[m->n_marks - 1] : 0;
    if (!m->n_marks || mark == 0 || value_at(m, m->stack[mark - 1])->kind != kind ||
        (kind == PICKLE_DICT && (m->depth - mark) % 2))
        return bad(m, "it adds to something that is no container");
    return gather(m, m->stack[mark - 1]);
}

/* container, n items -> container */
static bool extend_by(struct machine *m, enum pickle_kind kind, int n)
{
    uint32_t items[2], container;
    for (int i = n; i-- > 0;)
        if (!pop(m, &items[i]))
            return false;
    if (!pop(m, &container) || !push(m, container))
        return false;
    if (value_at(m, container)->kind != kind)
        return bad(m, "it adds to something that is no container");
    for (int i = 0; i < n; i++)
        if (!add_item(m, container, items[i]))
            return false;
    return true;
}

static bool push_mark(struct machine *m)
{
    if (!grow(m, &m->marks, m->n_marks, &m->marks_size, sizeof *m->marks))
        return false;
    m->marks[m->n_marks++] = (uint32_t)m->depth;
    return true;
}

static bool persistent(struct machine *m)
{
    uint32_t id;
    if (!pop(m, &id))
        return false;
    if (value_at(m, id)->kind != PICKLE_TUPLE || !push_kind(m, PICKLE_STORAGE))
        return bad(m, "a storage has no description");
    return add_item(m, m->stack[m->depth - 1], id);
}

static bool push_from(struct machine *m, int bytes)
{
    uint64_t number;
    if (!take_number(m, bytes, &number))
        return false;
    return push_number(m, bytes == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number);
}

static bool op_global(struct machine *m)
{
    const char *module = NULL, *name = NULL;
    size_t module_length = 0, name_length = 0;
    return take_line(m, &module, &module_length) && take_line(m, &name, &name_length) &&
           push_global(m, module, module_length, name, name_length);
}

static bool memo_op(struct machine *m, uint8_t op)
{
    uint64_t slot;
    if (op == 0x94)
        return put(m, m->next_memo);
    if (!take_number(m, op == 'q' || op == 'h' ? 1 : 4, &slot))
        return false;
    return op == 'q' || op == 'r' ? put(m, slot) : get(m, slot);
}

static bool skip(struct machine *m, int bytes)
{
    uint64_t ignored;
    return take_number(m, bytes, &ignored);
}

static bool pop_one(struct machine *m, bool again)
{
    uint32_t value = 0;
    if (!again && m->n_marks && m->depth == m->marks[m->n_marks - 1]) {
        m->n_marks--; /* POP of a mark */
        return true;
    }
    return pop(m, &value) && (!again || (push(m, value) && push(m, value)));
}

static bool pop_to_mark(struct machine *m)
{
    if (!m->n_marks)
        return bad(m, "a mark is missing");
    m->depth = m->marks[--m->n_marks];
    return true;
}

/* clang-format off */
static bool step(struct machine *m, uint8_t op)
{
    const uint8_t *ignored;
    switch (op) {
    case 0x80: return skip(m, 1);                       /* PROTO */
    case 0x95: return skip(m, 8);                       /* FRAME */
    case '(': return push_mark(m);
    case '0': return pop_one(m, false);
    case '2': return pop_one(m, true);
    case '1': return pop_to_mark(m);
    case 'N': return push_kind(m, PICKLE_NONE);
    case 0x88: return push_number(m, 1);
    case 0x89: return push_number(m, 0);
    case 'J': return push_from(m, 4);
    case 'K': return push_from(m, 1);
    case 'M': return push_from(m, 2);
    case 0x8a: return push_long(m, 1);
    case 0x8b: return push_long(m, 4);
    case 'G': return take(m, 8, &ignored) && push_kind(m, PICKLE_FLOAT);
    case 'X': case 'T': case 'B': return push_text(m, 4);
    case 0x8c: case 'U': case 'C': return push_text(m, 1);
    case 0x8d: case 0x8e: case 0x96: return push_text(m, 8);
    case ')': return push_kind(m, PICKLE_TUPLE);
    case 0x85: return tuple_of(m, 1);
    case 0x86: return tuple_of(m, 2);
    case 0x87: return tuple_of(m, 3);
    case 't': return collect(m, PICKLE_TUPLE);
    case ']': case 0x8f: return push_kind(m, PICKLE_LIST);
    case 'l': case 0x91: return collect(m, PICKLE_LIST);
    case 'a': return extend_by(m, PICKLE_LIST, 1);
    case 'e': case 0x90: return extend(m, PICKLE_LIST);
    case '}': return push_kind(m, PICKLE_DICT);
    case 's': return extend_by(m, PICKLE_DICT, 2);
    case 'u': return extend(m, PICKLE_DICT);
    case 'c': return op_global(m);
    case 0x93: return stack_global(m);
    case 'R': case 0x81: return call(m);                /* REDUCE, NEWOBJ */
    case 'b': return build(m);
    case 'Q': return persistent(m);
    case 'q': case 'r': case 'h': case 'j': case 0x94: return memo_op(m, op);
    default:
        return err_set(m->err, ERR_FORMAT, "%s: a pickle with the unknown instruction 0x%02x",
                       m->path, op);
    }
}
/* clang-format on */

static bool run(struct machine *m)
{
    while (m->at < m->size) {
        uint8_t op = m->bytes[m->at++];
        if (op == '.')
            return pop(m, &m->pickle->root);
        if (!step(m, op))
            return false;
    }
    return bad(m, "it ends in the middle");
}

bool pickle_parse(const uint8_t *bytes, size_t size, const char *path, struct pickle *out,
                  struct err *err)
{
    *out = (struct pickle){ 0 };
    struct machine m = { .bytes = bytes, .size = size, .path = path, .err = err, .pickle = out };
    bool ok = run(&m);
    free(m.stack), free(m.marks), free(m.memo);
    if (!ok)
        pickle_free(out);
    return ok;
}

void pickle_free(struct pickle *pickle)
{
    for (size_t i = 0; i < pickle->n_values; i++)
        free(pickle->values[i].items);
    free(pickle->values);
    *pickle = (struct pickle){ 0 };
}
