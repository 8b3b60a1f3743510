/* concept_run.c: a study in its results folder: claimed, kept if it is there already, recorded in
 * run.json (concept_study.h). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/claim.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/run.h"
#include "base/text.h"
#include "explain/concept_results.h"
#include "explain/concept_study.h"

char *concept_results_path(const char *folder)
{
    return text_format("%s/concepts.json", folder);
}

/* Results that exist: the same are kept, others are not replaced silently. */
static bool look_at_old(const struct concept_study *study, const char *path, bool *kept,
                        struct err *err)
{
    struct concept_results old = { 0 };
    bool ok = concept_results_read(path, &old, err);
    *kept = ok && strcmp(old.made_from, study->line) == 0;
    concept_results_free(&old);
    return *kept || (ok && err_set(err, ERR_USAGE,
                                   "%s: made with other options or from other files; pass "
                                   "--overwrite to replace it, or use another folder",
                                   path));
}

static bool write_run(const struct concept_request *request, const char *began, double began_s,
                      bool ended, struct err *err)
{
    struct file_out out;
    struct json_out json;
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    if (!file_out_open_in(&out, request->folder, "run.json", err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    run_put_command(&json, request->argc, request->argv, host);
    json_out_text(&json, "began", began);
    json_out_real(&json, "seconds", clock_monotonic_s() - began_s);
    json_out_real(&json, "cpu_seconds", clock_cpu_s());
    json_out_text(&json, "state", ended ? "done" : "not finished");
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

static bool run_claimed(struct concept_study *study, const char *path, const struct ctx *ctx,
                        struct err *err)
{
    const struct concept_request *request = study->request;
    char began[RUN_TIME_TEXT];
    double began_s = clock_monotonic_s();
    time_t now = (time_t)clock_now_s();
    struct tm utc;
    strftime(began, sizeof began, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    if (file_exists(path) && unlink(path) != 0) /* what follows belongs to the new one */
        return err_errno(err, path, "remove");
    return write_run(request, began, began_s, false, err) && concept_study_run(study, ctx, err) &&
           write_run(request, began, began_s, true, err);
}

bool concept_study_make(struct concept_study *study, bool overwrite, const struct ctx *ctx,
                        bool *kept, struct err *err)
{
    struct claim *claim = NULL;
    char *path = concept_results_path(study->request->folder);
    bool ok = path || err_memory(err, "results");
    *kept = false;
    ok = ok && claim_take(study->request->folder, &claim, err);
    if (ok && !overwrite && file_exists(path))
        ok = look_at_old(study, path, kept, err);
    ok = ok && (*kept || run_claimed(study, path, ctx, err));
    claim_release(claim);
    free(path);
    return ok;
}
