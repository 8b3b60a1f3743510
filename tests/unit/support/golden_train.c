/* golden_train.c: the golden tensors of training's parts as a group's state, for cmocka. */
#include "tests/unit/support/golden_train.h"

int golden_train_open(void **state)
{
    static struct golden golden;
    golden_open(&golden, "tests/golden/train_ops.bin");
    *state = &golden;
    return 0;
}

int golden_train_close(void **state)
{
    golden_close(*state);
    return 0;
}
