/* zoo_golden.c: reads the golden files of the zoo; makes weights from names. */
#include "zoo_golden.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"

enum { NPY_RECORD = 28, LIMIT_BITS = 32 };

static char *read_file(const char *folder, const char *name, const char *suffix, size_t *size)
{
    char *path = text_format("%s/%s%s", folder, name, suffix), *text = NULL;
    if (path && !file_read(path, (size_t)1 << LIMIT_BITS, &text, size, NULL))
        text = NULL;
    free(path);
    return text;
}

static bool parse_case(const char *line, struct zoo_case *out)
{
    long long batch, channels, height, width, classes, conditions, depth = 0;
    int auxiliary;
    if (sscanf(line, "%31s %31s %lld %lld %lld %lld %lld %d %lld %lf %lld", out->name, out->network,
               &batch, &channels, &height, &width, &classes, &auxiliary, &conditions, &out->gain,
               &depth) < 10)
        return false;
    out->options = (struct zoo_options){ .batch = batch,
                                         .channels = channels,
                                         .height = height,
                                         .width = width,
                                         .classes = classes,
                                         .auxiliary = auxiliary != 0,
                                         .conditions = conditions,
                                         .depth = depth };
    return true;
}

size_t zoo_cases(const char *folder, struct zoo_case **out)
{
    size_t size, n = 0;
    char *text = read_file(folder, "cases", ".txt", &size), *rest = text, *line;
    struct zoo_case *cases = NULL;
    while (text && (line = strsep(&rest, "\n"))) {
        struct zoo_case one;
        if (line[0] == '#' || !parse_case(line, &one))
            continue;
        struct zoo_case *larger = reallocarray(cases, n + 1, sizeof *cases);
        if (!larger)
            break;
        cases = larger;
        cases[n++] = one;
    }
    free(text);
    *out = cases;
    return n;
}

static float from_half(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return (float)(half >> 15 ? -value : value);
}

static bool parse_records(struct zoo_golden *golden, const char *npy, size_t size)
{
    if (size < 10 || memcmp(npy, "\x93NUMPY\x01", 7) != 0)
        return false;
    size_t begin = 10 + (size_t)(uint8_t)npy[8] + ((size_t)(uint8_t)npy[9] << 8);
    if (begin > size || (size - begin) % NPY_RECORD || !strstr(npy + 10, "'slack', '<f2'"))
        return false;
    golden->n_records = (size - begin) / NPY_RECORD;
    golden->records = calloc(golden->n_records, sizeof *golden->records);
    for (size_t i = 0; golden->records && i < golden->n_records; i++) {
        const char *at = npy + begin + i * NPY_RECORD;
        struct zoo_record *record = &golden->records[i];
        uint16_t slack[ZOO_MODES];
        memcpy(&record->key, at, 8);
        for (int mode = 0; mode < ZOO_MODES; mode++) {
            memcpy(&record->norm[mode], at + 8 + 8 * mode, 4);
            memcpy(&record->dot[mode], at + 12 + 8 * mode, 4);
        }
        memcpy(slack, at + 24, sizeof slack);
        for (int mode = 0; mode < ZOO_MODES; mode++)
            record->slack[mode] = from_half(slack[mode]);
    }
    return golden->records != NULL;
}

bool zoo_golden_read(struct zoo_golden *golden, const char *folder, const char *full_folder,
                     const char *name)
{
    size_t size = 0, text_size;
    *golden = (struct zoo_golden){ 0 };
    char *npy = read_file(folder, name, ".npy", &size);
    bool ok = npy && parse_records(golden, npy, size);
    free(npy);
    golden->text = read_file(folder, name, ".txt", &text_size);
    if (full_folder) {
        golden->full = (float *)(void *)read_file(full_folder, name, ".bin", &size);
        golden->n_full = size / sizeof *golden->full;
    }
    return ok && golden->text && (!full_folder || golden->full);
}

double *zoo_golden_values(const struct zoo_golden *golden, enum zoo_mode mode, const char *name,
                          int64_t count)
{
    static const char *const modes[ZOO_MODES] = { "eval", "train" };
    char *start = text_format("%s %s %lld ", modes[mode], name, (long long)count), *end;
    const char *at = start ? strstr(golden->text, start) : NULL;
    bool found = at && (at == golden->text || at[-1] == '\n');
    double *values = found ? calloc((size_t)count, sizeof *values) : NULL;
    at += values ? strlen(start) : 0;
    for (int64_t i = 0; values && i < count; i++, at = end)
        values[i] = strtod(at, &end);
    free(start);
    return values;
}

void zoo_golden_free(struct zoo_golden *golden)
{
    free(golden->records), free(golden->text), free(golden->full);
}

struct zoo_record *zoo_golden_find(const struct zoo_golden *golden, const char *name,
                                   const struct shape *shape)
{
    char text[SHAPE_TEXT];
    char *full_name = text_format("%s %s", name, shape_text(shape, text));
    uint64_t key = full_name ? rng_hash(full_name) : 0;
    free(full_name);
    for (size_t i = 0; i < golden->n_records; i++)
        if (golden->records[i].key == key)
            return &golden->records[i];
    return NULL;
}

uint64_t zoo_stream(const char *prefix, const char *name)
{
    char *joined = text_format("%s%s", prefix, name);
    uint64_t stream = joined ? rng_hash(joined) : 0;
    free(joined);
    return stream;
}

double zoo_number(uint64_t stream, int64_t i)
{
    uint64_t z = stream + ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 40) / 8388608 - 1;
}

static bool ends_with(const char *name, const char *tail)
{
    size_t length = strlen(name), n = strlen(tail);
    return length >= n && strcmp(name + length - n, tail) == 0;
}

/* value = offset + factor number, negative for every fourth element if `some_negative`. */
struct fill {
    double offset, factor;
    bool some_negative;
};

static struct fill fill_of(const struct value *value, double gain, bool held)
{
    const char *name = value->name;
    bool weight = ends_with(name, "weight"), bias = ends_with(name, "bias");
    if (ends_with(name, "running_var"))
        return (struct fill){ 1, 0.5, false };
    if (value->shape.rank == 1 && held && weight)
        return (struct fill){ 0.15, 0.05, false };
    if (value->shape.rank == 1 && held && ends_with(name, "conv2d.bias"))
        return (struct fill){ 2, 0.25, false };
    if (value->shape.rank == 1 && held && bias)
        return (struct fill){ 0.75, 0.25,
                              ends_with(name, "bn1.bias") || ends_with(name, ".bn.bias") ||
                                  ends_with(name, "norm1.bias") || ends_with(name, "norm2.bias") };
    if (value->shape.rank == 1)
        return (struct fill){ weight ? 1 : 0, 0.25, false };
    if (value->shape.rank == 3)
        return (struct fill){ 0, 0.5, false };
    double fan_in = (double)shape_span(&value->shape, 1, value->shape.rank);
    return (struct fill){ 0, gain * sqrt(3.0 / fan_in), false };
}

void zoo_fill_parameters(struct graph *graph, double gain, bool held)
{
    for (int32_t i = 0; i < graph->n_values; i++) {
        if (!graph_is_parameter(graph, i))
            continue;
        const struct value *value = &graph->values[i];
        struct fill fill = fill_of(value, gain, held);
        uint64_t stream = zoo_stream("", value->name);
        float *data = graph_data(graph, i);
        int64_t count = shape_count(&value->shape);
        for (int64_t k = 0; k < count; k++) {
            double x = fill.factor * zoo_number(stream, k) + fill.offset;
            data[k] = (float)(fill.some_negative && k % 4 == 3 ? -x : x);
        }
    }
}
