/* golden_train.h: setup and teardown of groups of tests whose state is the struct golden of
 * tests/golden/train_ops.bin. */
#ifndef TESTS_UNIT_SUPPORT_GOLDEN_TRAIN_H
#define TESTS_UNIT_SUPPORT_GOLDEN_TRAIN_H
#include "tests/unit/support/golden.h"

int golden_train_open(void **state);
int golden_train_close(void **state);
#endif
