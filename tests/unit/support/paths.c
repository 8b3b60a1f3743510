/* paths.c: see paths.h. */
#include "tests/unit/support/paths.h"

#include <glob.h>
#include <stdlib.h>
#include "base/text.h"

static char *below(const char *folder, const char *otherwise, const char *name)
{
    return text_format("%s/%s", folder ? folder : otherwise, name);
}

char *source_path(const char *name)
{
    return below(getenv("SOURCE"), ".", name);
}

char *scratch_path(const char *name)
{
    return below(getenv("SCRATCH"), "/tmp", name);
}

bool part_left(const char *path)
{
    char *pattern = text_format("%s.*part", path);
    glob_t found = { 0 };
    bool any = pattern && glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0;
    globfree(&found);
    free(pattern);
    return any;
}
