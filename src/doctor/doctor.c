/* doctor.c: the list of findings (doctor.h). */
#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"

const char *const doctor_state_names[] = { "ok", "note", "broken" };

/* Room for one more; there is always room for the first (doctor_examine allocated it). */
static struct doctor_finding *new_finding(struct doctor_list *list)
{
    if (!array_grow(&list->items, &list->room, (int64_t)list->n + 1, sizeof *list->items,
                    "the findings", NULL)) {
        list->failed = true;
        return &list->items[list->n - 1];
    }
    return &list->items[list->n++];
}

struct doctor_finding *doctor_add(struct doctor_list *list, const char *area, const char *name,
                                  enum doctor_state state, const char *fact, ...)
{
    struct doctor_finding *finding = new_finding(list);
    *finding = (struct doctor_finding){ .area = area, .name = name, .state = state };
    va_list args;
    va_start(args, fact);
    vsnprintf(finding->fact, sizeof finding->fact, fact, args);
    va_end(args);
    return finding;
}

void doctor_say(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text, size, format, args);
    va_end(args);
}

bool doctor_examine(const char *folder, const char *root, struct doctor_list *out, struct err *err)
{
    *out = (struct doctor_list){ .items = calloc(32, sizeof *out->items), .room = 32 };
    if (!out->items)
        return err_memory(err, "the findings");
    doctor_libraries(out);
    doctor_machine(out, folder, root);
    doctor_cluster(out);
    if (out->failed) {
        doctor_free(out);
        return err_memory(err, "the findings");
    }
    return true;
}

void doctor_free(struct doctor_list *list)
{
    free(list->items);
    *list = (struct doctor_list){ 0 };
}

bool doctor_broken(const struct doctor_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].state == DOCTOR_BROKEN)
            return true;
    return false;
}
