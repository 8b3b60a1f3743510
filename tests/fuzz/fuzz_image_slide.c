/* fuzz_image_slide.c: any bytes as a plain image that is opened as a slide: every row is decoded or
 * refused with a reason, and decoding it again gives the same pixels. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/image.h"
#include "slide/driver.h"
#include "tests/fuzz/files.h"

#define MOST_PX (1 << 20)

static bool read_all(const char *path, struct image *out)
{
    struct slide *slide = NULL;
    struct err err = { .kind = ERR_NONE };
    bool ok = slide_open_by(&driver_image, path, 0, &slide, &err);
    if (!ok && err.kind == ERR_NONE)
        abort(); /* refused without a word */
    if (!ok || slide_info(slide)->levels[0].width * slide_info(slide)->levels[0].height > MOST_PX) {
        slide_close(slide);
        return false;
    }
    const struct slide_level *level = &slide_info(slide)->levels[0];
    ok = slide_set_cache(slide, "/dev/null/none", NULL) &&
         slide_read(slide, 0, 0, 0, level->width, level->height, out, &err);
    if (!ok && err.kind == ERR_NONE)
        abort();
    slide_close(slide);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    struct image first, second;
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return 0;
    if (size > 0 && read_all(path, &first)) {
        fuzz_taken++;
        if (!read_all(path, &second) || memcmp(first.px, second.px, image_bytes(&first)) != 0)
            abort();
        image_free(&first);
        image_free(&second);
    }
    close(fd);
    return 0;
}
