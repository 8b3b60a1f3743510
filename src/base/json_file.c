/* json_file.c: see json_file.h. */
#include "base/json_file.h"

#include <stdlib.h>
#include "base/file.h"

json_t *json_file_read(const char *path, size_t limit, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t why;
    if (!file_read(path, limit, &text, &size, err))
        return NULL;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (!root) {
        err_set(err, ERR_FORMAT, "%s:%d: not JSON: %s", path, why.line, why.text);
    } else if (!json_is_object(root)) {
        err_set(err, ERR_FORMAT, "%s: not a JSON object", path);
        json_decref(root);
        root = NULL;
    }
    return root;
}
