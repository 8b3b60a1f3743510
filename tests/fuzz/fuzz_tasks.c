/* fuzz_tasks.c: any bytes as a task list: up to the first 0 byte tasks/command.json, after it
 * tasks/list.csv. Tasks of a list that is taken are numbered from 1 and stay in their folder. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include "cluster/list.h"
#include "tests/fuzz/files.h"

static void check(const struct task_list *list)
{
    if (list->argc < 2 || !list->kind || !list->cwd)
        abort();
    for (int64_t i = 0; i < list->n; i++) {
        const struct task *task = &list->items[i];
        char *path = task_path(list, task);
        if (task->id != i + 1 || !path || strstr(path, "/../") ||
            strncmp(path, list->folder, strlen(list->folder)) != 0)
            abort();
        free(path);
        task_complete(list, task);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_piece command = fuzz_next(&data, &size);
    struct task_list list;
    struct err err = { .kind = ERR_NONE };
    const char *folder = fuzz_folder();
    fuzz_write("tasks/command.json", command.bytes, command.size);
    fuzz_write("tasks/list.csv", data, size);
    if (list_read(folder, &list, &err))
        fuzz_taken++, check(&list);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    list_free(&list);
    fuzz_clear();
    return 0;
}
