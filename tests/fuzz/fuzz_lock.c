/* fuzz_lock.c: any bytes as a results folder's .lock: someone is named or nobody, and a lock of
 * nobody alive does not keep the next run out. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include "base/claim.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct claim_holder holder;
    struct claim *claim = NULL;
    struct err err = { .kind = ERR_NONE };
    const char *folder = fuzz_folder();
    fuzz_write(".lock", data, size);
    bool found = claim_look(folder, &holder);
    fuzz_taken += found && holder.pid > 0;
    if (claim_take(folder, &claim, &err)) {
        if (found && holder.alive)
            abort();
        claim_release(claim);
    } else if (err.kind == ERR_NONE) {
        abort(); /* refused without a word */
    }
    fuzz_clear();
    return 0;
}
