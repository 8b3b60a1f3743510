/* read_level.c: SLIDE FOLDER: the pixels of every level of a slide as FOLDER/<level>.rgb, as the
 * program reads them; for matrix.py. A level that cannot be read is reported on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include "base/text.h"
#include "slide/slide.h"

static bool write_level(struct slide *slide, int level, const char *folder, struct err *err)
{
    const struct slide_level *facts = &slide_info(slide)->levels[level];
    struct image image;
    if (!slide_read(slide, level, 0, 0, facts->width, facts->height, &image, err))
        return false;
    char *path = text_format("%s/%d.rgb", folder, level);
    FILE *stream = path ? fopen(path, "wb") : NULL;
    bool ok = stream && fwrite(image.px, 1, image_bytes(&image), stream) == image_bytes(&image);
    if (stream && fclose(stream) != 0)
        ok = false;
    free(path);
    image_free(&image);
    return ok || err_errno(err, folder, "write to");
}

int main(int argc, char **argv)
{
    struct slide *slide = NULL;
    struct err err = { 0 };
    if (argc != 3)
        return 2;
    bool ok = slide_open(argv[1], 0, &slide, &err);
    for (int i = 0; ok && i < slide_info(slide)->n_levels; i++)
        ok = write_level(slide, i, argv[2], &err);
    slide_close(slide);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    return ok ? 0 : 1;
}
