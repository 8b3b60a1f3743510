/* linear.c: see linear.h. A task is some rows and columns of y. Its columns are computed in groups;
 * of every group a panel of B stays in the level-1 cache, with AVX-512 in the level-2 cache, while
 * all rows of the task meet it. The sums of a group are kept in one piece, since rows of y that lie
 * a power of two apart would not stay in the caches, and go to y when they are complete. */
#include "net/kernels/linear.h"
#include "base/divide.h"
#include "net/kernels/reg.h"
#include "net/kernels/gemm.h"

#define ROWS_OF_TASK 72 /* at most; whole tiles of gemm.h, with 6 rows or 8 */
#define GROUP 144       /* columns at most; whole panels */
/* Inputs of a block at most. What meets all rows of a task is a panel of so many: 16 KB, half of
 * the smallest level-1 cache, or with AVX-512 73 KB in the level-2 cache, from which three
 * registers come in time for 24 multiply-adds. */
#define BLOCK 256
#define BLOCK_AVX512 384

/* Sums of rows and columns that go to y [rows, n], whose rows are `step` floats apart, as those of
 * the residual. */
struct sums {
    int64_t rows, n, step;
    const float *at, *bias, *residual; /* at [rows, GROUP] */
    float *y;
};

typedef void finish_function(enum linear_function function, const struct sums *sums);

#define LOOPS "net/kernels/linear_loops.h"
#include "net/kernels/each_level.h"

/* Rows and columns of a task. */
struct part {
    int64_t row, rows, column, columns;
};

/* How y is divided; no bits depend on it. */
struct division {
    int64_t rows, columns;           /* of a task */
    int64_t row_tasks, column_tasks; /* their numbers */
};

struct arrays {
    const float *x, *packed, *bias, *residual;
    float *y;
};

/* Inputs of a block: all blocks but the last are as large. Sums depend on it. */
static int64_t block_inputs(const struct linear *l)
{
    int64_t most = l->level == SIMD_AVX512 ? BLOCK_AVX512 : BLOCK;
    int64_t blocks = ceil_div(l->inputs, most);
    return ceil_div(ceil_div(l->inputs, blocks), 8) * 8;
}

/* The packed weights of columns from `column` on and of inputs from `input` on; behind the last
 * column, of the first, with which another task begins. */
static const float *packed_at(const struct linear *l, const float *packed, int64_t column,
                              int64_t input)
{
    column = column < l->outputs ? column : 0;
    return packed + column * l->inputs + input * gemm_panel(l->level);
}

/* One group of columns of a task, and all inputs. */
static void run_group(const struct linear *l, const struct arrays *at, const struct part *part)
{
    const int64_t panel = gemm_panel(l->level), block = block_inputs(l);
    gemm_function *gemm = gemm_of(l->level);
    finish_function *finish = SIMD_PICK(l->level, finish, finish_portable);
    int64_t first = part->row * l->outputs + part->column;
    float sums[ROWS_OF_TASK * GROUP] __attribute__((aligned(64)));
    for (int64_t i = 0; i < l->inputs; i += block) {
        bool more = i + block < l->inputs;
        gemm(&(struct gemm){ .m = part->rows,
                             .n = part->columns,
                             .k = l->inputs - i < block ? l->inputs - i : block,
                             .a = at->x + part->row * l->inputs + i,
                             .a_row = l->inputs,
                             .a_column = 1,
                             .b = packed_at(l, at->packed, part->column, i),
                             .b_row = panel,
                             .b_panel = panel * l->inputs,
                             .b_next =
                                 packed_at(l, at->packed, part->column + (more ? 0 : part->columns),
                                           more ? i + block : 0),
                             .c = sums,
                             .c_row = GROUP,
                             .add = i > 0,
                             .next = at->y + first,
                             .next_row = l->outputs });
    }
    finish(l->function, &(struct sums){ .rows = part->rows,
                                        .n = part->columns,
                                        .step = l->outputs,
                                        .at = sums,
                                        .bias = at->bias ? at->bias + part->column : NULL,
                                        .residual = at->residual ? at->residual + first : NULL,
                                        .y = at->y + first });
}

static struct division divide(const struct linear *l)
{
    const int64_t panel = gemm_panel(l->level), panels = ceil_div(l->outputs, panel);
    const int64_t tile = gemm_rows(l->level);
    struct division d = { .row_tasks = ceil_div(l->rows, ROWS_OF_TASK), .column_tasks = 1 };
    if (d.row_tasks % l->threads && d.row_tasks < 8 * l->threads)
        d.column_tasks = l->threads < panels ? l->threads : panels;
    d.rows = ceil_div(ceil_div(l->rows, d.row_tasks), tile) * tile;
    d.row_tasks = ceil_div(l->rows, d.rows);
    d.columns = ceil_div(panels, d.column_tasks) * panel;
    d.column_tasks = ceil_div(l->outputs, d.columns);
    return d;
}

void linear_run(const struct linear *l, const float *x, const float *packed, const float *bias,
                const float *residual, float *y)
{
    const struct division d = divide(l);
    const struct arrays at = { x, packed, bias, residual, y };
    const int64_t group = GROUP / gemm_panel(l->level) * gemm_panel(l->level);
#pragma omp parallel for num_threads(l->threads) schedule(static) if (l->threads > 1)
    for (int64_t i = 0; i < d.row_tasks * d.column_tasks; i++) {
        struct part part = { .row = i / d.column_tasks * d.rows };
        int64_t column = i % d.column_tasks * d.columns,
                end = smaller_of(column + d.columns, l->outputs);
        part.rows = smaller_of(d.rows, l->rows - part.row);
        for (; column < end; column += group) {
            part.column = column;
            part.columns = smaller_of(group, end - column);
            run_group(l, &at, &part);
        }
    }
}

size_t linear_packed_floats(const struct linear *l)
{
    return (size_t)gemm_packed_floats(l->level, l->outputs, l->inputs);
}

void linear_pack(const struct linear *l, const float *weight, int64_t input_step,
                 int64_t output_step, float *packed)
{
    int64_t panels = ceil_div(l->outputs, gemm_panel(l->level));
#pragma omp parallel for num_threads(l->threads) schedule(static) if (l->threads > 1)
    for (int64_t p = 0; p < panels; p++)
        gemm_pack(l->level, l->outputs, l->inputs, weight, input_step, output_step, p, p + 1,
                  packed);
}
