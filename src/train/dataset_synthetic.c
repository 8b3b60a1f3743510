/* dataset_synthetic.c: synthetic patches: in training beside real ones, and nowhere else
 * (dataset_origin.h). */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "patch/synthetic.h"
#include "train/dataset_origin.h"

bool synthetic_picture(const char *path)
{
    static const char name[] = "/grid.png";
    size_t length = strlen(path), own = strlen(name);
    if (length < own || strcmp(path + length - own, name) != 0)
        return false;
    char *list = text_format("%.*s/samples.json", (int)(length - own), path);
    bool is = list && file_exists(list);
    free(list);
    return is;
}

/* Named as `synthesize sample` names its images? */
static bool named_synthetic(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    return strncmp(base, "synthetic_seed", strlen("synthetic_seed")) == 0;
}

/* Does the PNG say so? What cannot be read is found when it is used. */
static bool says_synthetic(const char *path)
{
    char *note = NULL;
    bool says = strcmp(file_extension(path), ".png") == 0 &&
                image_read_png_note(path, &note, NULL) && note &&
                strncmp(note, SYNTHETIC_NOTE, strlen(SYNTHETIC_NOTE)) == 0;
    free(note);
    return says;
}

static bool refuse(const struct listing *listing, const char *path, const char *name,
                   struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "%s: %s%s: is synthetic; list it in data.synthetic, which is only learnt from, "
                   "beside real patches",
                   listing->key, path, name);
}

bool synthetic_store_allowed(const struct listing *listing, const char *path, const char *mark,
                             struct err *err)
{
    if (listing->synthetic == SYNTHETIC_REFUSED && mark[0])
        return refuse(listing, path, "", err);
    if (listing->synthetic == SYNTHETIC_ONLY && !mark[0])
        return err_set(
            err, ERR_USAGE,
            "data.synthetic: %s: does not say that it is synthetic; list real patches in "
            "data.train",
            path);
    return true;
}

bool synthetic_image_allowed(const struct listing *listing, const struct origin *origin,
                             const char *name, bool first, struct err *err)
{
    bool named = named_synthetic(name), says = named && origin->kind == ORIGIN_TAR;
    bool looked_at = named || first || listing->side != DATA_TRAIN;
    if (listing->synthetic != SYNTHETIC_REFUSED || !looked_at)
        return true;
    if (origin->kind == ORIGIN_FOLDER) {
        char *path = text_format("%s%s", origin->path, name);
        says = path && says_synthetic(path);
        free(path);
    }
    return !says || refuse(listing, origin->path, name[0] == '/' ? name : "", err);
}

bool dataset_add_synthetic(struct listing *listing, struct err *err)
{
    const struct texts *paths = &listing->config->data.synthetic;
    int64_t before = listing->dataset->n_samples;
    if (paths->n == 0)
        return listing->config->data.synthetic_share == 0 ||
               err_set(err, ERR_USAGE,
                       "data.synthetic_share: there are no synthetic patches; list some in "
                       "data.synthetic");
    listing->synthetic = SYNTHETIC_ONLY;
    listing->key = "data.synthetic";
    listing->side = DATA_TRAIN;
    for (size_t i = 0; i < paths->n; i++)
        if (!origin_add(listing, paths->items[i], err))
            return false;
    listing->dataset->n_synthetic = listing->dataset->n_samples - before;
    return true;
}
