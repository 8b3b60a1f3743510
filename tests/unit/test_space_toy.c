/* test_space_toy.c: a 3 x 3 convolution of an image of 6 x 5 pixels on 2 x 2 processes, small
 * enough to be written down: every output, the gradients of the kernel, the bias and the image are
 * sums over at most 30 cells, computed here in double precision from the definition. Where the four
 * parts meet, each needs a corner of the one across, and its gradient goes back there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "support/space_parts.h"
#include "support/zoo_golden.h"

#define HEIGHT 6
#define WIDTH 5
#define STEP 0.5 /* of central differences; of a linear function any will do */

struct toy {
    double x[HEIGHT][WIDTH], kernel[3][3], bias, dy[HEIGHT][WIDTH];
};

static struct graph *convolution(void *arg)
{
    (void)arg;
    struct graph *graph = graph_new("toy");
    value_id x = graph_input(graph, "input", SHAPE(1, 1, HEIGHT, WIDTH));
    graph_output(graph, "y", graph_conv(graph, x, "conv", 1, true, conv_square(3, 1, 1)));
    if (!graph_ok(graph, NULL) || !graph_allocate(graph, NULL))
        return NULL;
    zoo_fill_parameters(graph, 1, false);
    return graph;
}

/* The numbers that space_parts.h gives to the network. */
static struct toy toy_of(const struct graph *graph)
{
    struct toy toy = { .bias = (double)graph_data(graph, graph_find(graph, "conv.bias"))[0] };
    const float *kernel = graph_data(graph, graph_find(graph, "conv.weight"));
    for (int i = 0; i < 9; i++)
        toy.kernel[i / 3][i % 3] = (double)kernel[i];
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        toy.x[i / WIDTH][i % WIDTH] = zoo_number(zoo_stream("", "input"), i);
        toy.dy[i / WIDTH][i % WIDTH] = zoo_number(zoo_stream("loss:", "y"), i);
    }
    return toy;
}

static double at(const double image[HEIGHT][WIDTH], int row, int column)
{
    bool inside = row >= 0 && row < HEIGHT && column >= 0 && column < WIDTH;
    return inside ? image[row][column] : 0;
}

static double output(const struct toy *toy, int row, int column)
{
    double y = toy->bias;
    for (int k = 0; k < 9; k++)
        y += toy->kernel[k / 3][k % 3] * at(toy->x, row + k / 3 - 1, column + k % 3 - 1);
    return y;
}

static double loss(const struct toy *toy)
{
    double sum = 0;
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        sum += toy->dy[i / WIDTH][i % WIDTH] * output(toy, i / WIDTH, i % WIDTH);
    return sum;
}

/* The derivative of the loss with respect to a number of the toy. */
static double slope(struct toy *toy, double *number)
{
    double was = *number, above, below;
    *number = was + STEP, above = loss(toy);
    *number = was - STEP, below = loss(toy);
    *number = was;
    return (above - below) / (2 * STEP);
}

static double off(double worst, float is, double should)
{
    return fmax(worst, fabs((double)is - should));
}

/* The largest error of all numbers, which are about 1. */
static double error(int rows, int columns, enum space_fault fault)
{
    struct space_job job = {
        .build = convolution, .rows = rows, .columns = columns, .frozen = true, .fault = fault
    };
    struct space_result is = { 0 };
    double worst = 0;
    space_parts_run(&job, &is);
    struct toy toy = toy_of(is.graph);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        worst = off(worst, is.outputs[0][i], output(&toy, i / WIDTH, i % WIDTH));
        worst = off(worst, is.input_gradient[i], slope(&toy, &toy.x[i / WIDTH][i % WIDTH]));
    }
    for (int k = 0; k < 9; k++)
        worst = off(worst, is.gradients[k], slope(&toy, &toy.kernel[k / 3][k % 3]));
    worst = off(worst, is.gradients[9], slope(&toy, &toy.bias));
    assert_int_equal(is.count, 10);
    space_result_free(&is);
    return worst;
}

static void parts_with_corners(void **state)
{
    (void)state;
    static const int grids[][2] = { { 1, 1 }, { 1, 2 }, { 2, 1 }, { 2, 2 }, { 3, 2 } };
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        double found = error(grids[i][0], grids[i][1], FAULT_NONE);
        if (!(found < 2e-6))
            fail_msg("%d x %d: off by %.1e", grids[i][0], grids[i][1], found);
    }
}

/* Without the gradients of halos, or with none where the first window needs them. */
static void mistakes_are_seen(void **state)
{
    (void)state;
    assert_true(error(2, 2, FAULT_DETACHED) > 1e-2);
    assert_true(error(2, 2, FAULT_SMALL) > 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_with_corners),
        cmocka_unit_test(mistakes_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
