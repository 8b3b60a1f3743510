/* fuzz_records.c: any bytes as each of the JSON files that runs and clusters leave: the record of a
 * task, of a submission and of its end, and run.json as status and report read it. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include "cluster/folder_status.h"
#include "cluster/submit.h"
#include "report/results.h"
#include "tests/fuzz/files.h"

static void read_records(const char *folder)
{
    struct task_list list = { .folder = (char *)folder };
    struct task_record record;
    struct submission submission;
    bool ok;
    char text[900];
    record_read(&list, 1, &record);
    fuzz_taken += record.state != TASK_LEFT;
    if (record.state > TASK_STOPPED)
        abort();
    record_out_of_time(&record);
    submission_read(&list, &submission);
    tasks_finished(&list, "microtome-1a2b", &ok, text);
}

static void read_runs(const char *folder)
{
    struct folder_status status;
    struct results results;
    struct err err = { .kind = ERR_NONE };
    char *folders[] = { (char *)folder };
    if (folder_status_look(folder, &status, &err)) {
        if (status.planned < 0 || status.left < 0 || status.done < 0)
            abort();
        folder_status_free(&status);
    } else if (err.kind == ERR_NONE) {
        abort(); /* refused without a word */
    }
    if (results_read(folders, 1, NULL, NULL, &results, &err))
        results_free(&results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *folder = fuzz_folder();
    fuzz_write("tasks/record/1.json", data, size);
    fuzz_write("tasks/submission.json", data, size);
    fuzz_write("tasks/finished.json", data, size);
    fuzz_write("run.json", data, size);
    fuzz_write("metrics.json", data, size);
    read_records(folder);
    read_runs(folder);
    fuzz_clear();
    return 0;
}
