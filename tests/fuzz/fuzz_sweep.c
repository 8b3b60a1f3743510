/* fuzz_sweep.c: any bytes as a sweep: up to the first 0 byte the text of --sweep, after it
 * sweep.json. Folders of combinations stay below that of the sweep, and no two are the same. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "sweep/sweep.h"
#include "sweep/sweep_status.h"
#include "tests/fuzz/files.h"

static void check_names(const struct sweep *sweep)
{
    if (sweep->n == 0 || sweep->n > SWEEP_MOST)
        abort();
    for (size_t i = 0; i < sweep->n; i++) {
        const char *name = sweep->items[i].name;
        if (!name[0] || name[0] == '.' || strlen(name) > 120 || strpbrk(name, "/ \\\n$'\""))
            abort();
        if (i > 0 && strcmp(name, sweep->items[i - 1].name) == 0)
            abort();
    }
}

static void try_axis(const struct fuzz_piece *piece, const char *folder)
{
    struct sweep sweep;
    struct err err = { .kind = ERR_NONE };
    char *text = text_format("%.*s", (int)piece->size, (const char *)piece->bytes);
    if (sweep_new(&(const char *){ text }, 1, folder, &sweep, &err))
        check_names(&sweep);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    sweep_free(&sweep);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_piece axis = fuzz_next(&data, &size);
    struct sweep_status status;
    struct err err = { .kind = ERR_NONE };
    const char *folder = fuzz_folder();
    fuzz_write("sweep.json", data, size);
    try_axis(&axis, folder);
    if (sweep_status_look(folder, &status, &err)) {
        fuzz_taken++;
        if (status.done + status.failed > status.n)
            abort();
    } else if (err.kind == ERR_NONE) {
        abort();
    }
    sweep_status_free(&status);
    fuzz_clear();
    return 0;
}
