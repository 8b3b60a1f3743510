/* paths.c: see paths.h. */
#include "tests/unit/support/paths.h"

#include <stdlib.h>
#include "base/file.h"

static char *below(const char *folder, const char *otherwise, const char *name)
{
    return file_format("%s/%s", folder ? folder : otherwise, name);
}

char *source_path(const char *name)
{
    return below(getenv("SOURCE"), ".", name);
}

char *scratch_path(const char *name)
{
    return below(getenv("SCRATCH"), "/tmp", name);
}
