/* list.c: see list.h. */
#include "cluster/list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/json_file.h"
#include "base/json.h"
#include "base/version.h"
#include "base/text.h"

#define MAX_COMMAND_BYTES (64 << 20)

bool list_new(const char *folder, const char *kind, int argc, char *const *argv,
              struct task_list *out, struct err *err)
{
    *out = (struct task_list){ 0 };
    if (!file_make_folder(folder, err))
        return false;
    out->folder = realpath(folder, NULL);
    if (!out->folder)
        return err_errno(err, folder, "find");
    out->kind = strdup(kind);
    out->cwd = getcwd(NULL, 0);
    out->argv = calloc((size_t)argc + 1, sizeof *out->argv);
    bool ok = out->kind && out->cwd && out->argv;
    for (int i = 0; ok && i < argc; i++, out->argc++)
        ok = (out->argv[i] = strdup(argv[i])) != NULL;
    return ok || err_memory(err, "the task list");
}

bool list_add(struct task_list *list, const char *slide, int64_t part, double cost,
              const char *file, const char *whole, const char *inputs, struct err *err)
{
    if ((list->n & (list->n - 1)) == 0) { /* full at every power of two */
        size_t room = list->n ? 2 * (size_t)list->n : 1;
        struct task *more = realloc(list->items, room * sizeof *more);
        if (!more)
            return err_memory(err, "the task list");
        list->items = more;
    }
    struct task task = { .id = list->n + 1,
                         .slide = strdup(slide),
                         .part = part,
                         .cost = cost,
                         .file = strdup(file),
                         .whole = strdup(whole),
                         .inputs = strdup(inputs) };
    list->items[list->n++] = task;
    return (task.slide && task.file && task.whole && task.inputs) ||
           err_memory(err, "the task list");
}

void list_free(struct task_list *list)
{
    for (int64_t i = 0; i < list->n; i++) {
        free(list->items[i].slide);
        free(list->items[i].file);
        free(list->items[i].whole);
        free(list->items[i].inputs);
    }
    for (int i = 0; i < list->argc; i++)
        free(list->argv[i]);
    free(list->items);
    free(list->argv);
    free(list->folder);
    free(list->kind);
    free(list->cwd);
    *list = (struct task_list){ 0 };
}

char *task_path(const struct task_list *list, const struct task *task)
{
    return text_format("%s/%s", list->folder, task->file);
}

bool task_complete(const struct task_list *list, const struct task *task)
{
    char *path = task_path(list, task);
    char *whole = *task->whole ? text_format("%s/%s", list->folder, task->whole) : NULL;
    bool complete = (path && file_exists(path)) || (whole && file_exists(whole));
    free(path);
    free(whole);
    return complete;
}

static bool write_command(const struct task_list *list, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, list->folder, "tasks/command.json", err))
        return false;
    struct json_out json;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "version", MICROTOME_VERSION);
    json_out_text(&json, "kind", list->kind);
    json_out_text(&json, "folder", list->cwd);
    json_out_array_line(&json, "arguments");
    for (int i = 0; i < list->argc; i++)
        json_out_text(&json, NULL, list->argv[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

static bool write_items(const struct task_list *list, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, list->folder, "tasks/list.csv", err))
        return false;
    fputs("task,slide,part,cost,file,whole,inputs\n", out.stream);
    for (int64_t i = 0; i < list->n; i++) {
        const struct task *task = &list->items[i];
        fprintf(out.stream, "%lld,", (long long)task->id);
        csv_write_cell(out.stream, task->slide);
        fprintf(out.stream, ",%lld,%.17g,", (long long)task->part, task->cost);
        csv_write_cell(out.stream, task->file);
        fputc(',', out.stream);
        csv_write_cell(out.stream, task->whole);
        fputc(',', out.stream);
        csv_write_cell(out.stream, task->inputs);
        fputc('\n', out.stream);
    }
    return file_out_commit(&out, err);
}

static bool same_tasks(const struct task_list *a, const struct task_list *b)
{
    bool same = a->n == b->n && strcmp(a->kind, b->kind) == 0;
    for (int64_t i = 0; same && i < a->n; i++)
        same = a->items[i].part == b->items[i].part &&
               strcmp(a->items[i].slide, b->items[i].slide) == 0 &&
               strcmp(a->items[i].file, b->items[i].file) == 0 &&
               strcmp(a->items[i].inputs, b->items[i].inputs) == 0;
    return same;
}

static void remove_records(const struct task_list *list)
{
    char *folder = text_format("%s/tasks/record", list->folder);
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    free(folder);
}

bool list_write(const struct task_list *list, struct err *err)
{
    static const char *const folders[] = { "record", "log", "work" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *folder = text_format("%s/tasks/%s", list->folder, folders[i]);
        bool ok = folder ? file_make_folder(folder, err) : err_memory(err, "the task list");
        free(folder);
        if (!ok)
            return false;
    }
    struct task_list before = { 0 };
    bool same = list_read(list->folder, &before, NULL) && same_tasks(list, &before);
    list_free(&before);
    if (!same)
        remove_records(list);
    return (same || write_items(list, err)) && write_command(list, err);
}

static bool read_command(struct task_list *list, struct err *err)
{
    char *path = text_format("%s/tasks/command.json", list->folder);
    json_t *root = path ? json_file_read(path, MAX_COMMAND_BYTES, err) : NULL;
    const char *kind = NULL, *cwd = NULL;
    json_t *arguments = NULL;
    bool ok = path ? root != NULL : err_memory(err, "the task list");
    if (ok) {
        ok = json_unpack(root, "{s:s, s:s, s:o}", "kind", &kind, "folder", &cwd, "arguments",
                         &arguments) == 0 &&
             json_is_array(arguments) && json_array_size(arguments) >= 2;
        for (size_t i = 0; ok && i < json_array_size(arguments); i++)
            ok = json_is_string(json_array_get(arguments, i));
        if (!ok)
            err_set(err, ERR_FORMAT, "%s: not written by microtome, or damaged; submit again",
                    path);
    }
    if (ok) {
        list->kind = strdup(kind);
        list->cwd = strdup(cwd);
        list->argv = calloc(json_array_size(arguments) + 1, sizeof *list->argv);
        ok = list->kind && list->cwd && list->argv;
        for (size_t i = 0; ok && i < json_array_size(arguments); i++, list->argc++)
            ok = (list->argv[i] = strdup(json_string_value(json_array_get(arguments, i)))) != NULL;
        if (!ok)
            err_memory(err, "the task list");
    }
    json_decref(root);
    free(path);
    return ok;
}

static bool read_row(const struct csv *csv, size_t row, const int columns[7],
                     struct task_list *list, struct err *err)
{
    char *ends[3];
    long long id = strtoll(csv_cell(csv, row, columns[0]), &ends[0], 10);
    long long part = strtoll(csv_cell(csv, row, columns[2]), &ends[1], 10);
    double cost = strtod(csv_cell(csv, row, columns[3]), &ends[2]);
    const char *file = csv_cell(csv, row, columns[4]);
    const char *whole = csv_cell(csv, row, columns[5]), *inputs = csv_cell(csv, row, columns[6]);
    /* A task writes its file: it must lie in the results folder. */
    if (*ends[0] || *ends[1] || *ends[2] || id != list->n + 1 || !*file || *file == '/' ||
        strstr(file, "../") || *whole == '/' || strstr(whole, "../"))
        return err_set(err, ERR_FORMAT, "%s:%d: not a task; submit again", csv->path,
                       csv->lines[row]);
    return list_add(list, csv_cell(csv, row, columns[1]), part, cost, file, whole, inputs, err);
}

static bool read_items(struct task_list *list, struct err *err)
{
    static const char *const names[] = {
        "task", "slide", "part", "cost", "file", "whole", "inputs"
    };
    char *path = text_format("%s/tasks/list.csv", list->folder);
    struct csv csv = { 0 };
    bool ok = path ? csv_read(path, &csv, err) : err_memory(err, "the task list");
    int columns[7];
    for (int i = 0; ok && i < 7; i++) {
        columns[i] = csv_column(&csv, names[i]);
        if (columns[i] < 0 && i < 6) /* lists of older versions have no inputs */
            ok = err_set(err, ERR_FORMAT, "%s: has no column '%s'; submit again", path, names[i]);
    }
    for (size_t row = 0; ok && row < csv.n_rows; row++)
        ok = read_row(&csv, row, columns, list, err);
    csv_free(&csv);
    free(path);
    return ok;
}

bool list_exists(const char *folder)
{
    char *path = text_format("%s/tasks/list.csv", folder);
    bool there = path && file_exists(path);
    free(path);
    return there;
}

bool list_read(const char *folder, struct task_list *out, struct err *err)
{
    *out = (struct task_list){ 0 };
    out->folder = realpath(folder, NULL);
    if (!out->folder)
        return err_errno(err, folder, "open");
    if (!list_exists(out->folder))
        return err_set(err, ERR_MISSING,
                       "%s: contains no task list; name the -o folder of a command with --on slurm "
                       "or --on sge (for a run on this computer, see run.json and slides.csv)",
                       folder);
    return read_command(out, err) && read_items(out, err);
}
