/* race.c: a race on purpose on the threads that extract and predict work with, which
 * ThreadSanitizer must find, or its silence about the program would mean nothing. */
#include <stdio.h>
#include "base/pool.h"

static bool add(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    volatile int64_t *sum = arg;
    for (int i = 0; i < 1000000; i++) /* long enough that pieces overlap on a busy machine */
        *sum += index;                /* no word between the threads */
    return true;
}

int main(void)
{
    int64_t sum = 0;
    struct pool *pool = pool_new(3);
    bool ok = pool && pool_for(pool, 9, add, &sum, NULL, NULL);
    pool_free(pool);
    printf("%lld\n", (long long)sum);
    return ok ? 0 : 1;
}
