/* zoo_golden.h: what PyTorch gave for the networks of the zoo (tests/golden/zoo), and the numbers
 * from which both sides make weights and inputs. make_zoo_golden.py says what is in the files. */
#ifndef TESTS_ZOO_GOLDEN_H
#define TESTS_ZOO_GOLDEN_H
#include <stdbool.h>
#include <stdint.h>
#include "net/zoo/zoo.h"

enum zoo_mode { ZOO_EVAL, ZOO_TRAIN, ZOO_MODES };

struct zoo_case {
    char name[32], network[32];
    struct zoo_options options;
    double gain;
};

/* All of cases.txt; *out is the caller's, free(). Returns how many; 0 if the file is not there. */
size_t zoo_cases(const char *folder, struct zoo_case **out);

struct zoo_record {
    uint64_t key;
    float norm[ZOO_MODES], dot[ZOO_MODES];
    float slack[ZOO_MODES]; /* relative change of a gradient by what lies near a kink */
    bool seen;
};

struct zoo_golden {
    struct zoo_record *records;
    size_t n_records;
    char *text;  /* CASE.txt */
    float *full; /* CASE.bin, or NULL */
    size_t n_full;
};

/* full_folder NULL: checksums only. False if a file is absent or not what it should be. */
bool zoo_golden_read(struct zoo_golden *golden, const char *folder, const char *full_folder,
                     const char *name);
void zoo_golden_free(struct zoo_golden *golden);

/* The record of "name [shape]"; NULL if PyTorch has no such thing. */
struct zoo_record *zoo_golden_find(const struct zoo_golden *golden, const char *name,
                                   const struct shape *shape);

/* The values of an output or a small gradient in full, as the .txt has them; free(). NULL: it has
 * not. */
double *zoo_golden_values(const struct zoo_golden *golden, enum zoo_mode mode, const char *name,
                          int64_t count);

/* numbers(name, n) of make_zoo_golden.py: element i, in [-1, 1). */
uint64_t zoo_stream(const char *prefix, const char *name);
double zoo_number(uint64_t stream, int64_t i);
/* first_value(..) for all parameters of a graph. held: activations off the kinks. */
void zoo_fill_parameters(struct graph *graph, double gain, bool held);
#endif
