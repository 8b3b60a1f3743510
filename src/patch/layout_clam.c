/* layout_clam.c: CLAM's older layout with images: /imgs [N, p, p, 3] and /coords [N, 2]. */
#include "patch/layout.h"

static bool put_imgs_attributes(hid_t imgs, const struct store_facts *facts)
{
    double downsample[2] = { facts->downsample, facts->downsample };
    int64_t level_dim[2] = { facts->level_width, facts->level_height };
    return h5_put_int(imgs, "patch_level", facts->level) &&
           h5_put_text(imgs, "wsi_name", facts->slide) &&
           h5_put_reals(imgs, "downsample", downsample, 2) &&
           h5_put_ints(imgs, "level_dim", level_dim, 2) &&
           h5_put_ints(imgs, "downsampled_level_dim", level_dim, 2);
}

static bool create(struct layout_writer *writer)
{
    const struct units *units = &writer->units;
    hid_t imgs;
    int64_t offset;
    if (!layout_put_lists(writer) ||
        !layout_reserve(writer->file, "imgs", units->n, units->size, &imgs, &offset))
        return false;
    for (int64_t i = 0; i < units->n; i++)
        writer->offsets[i] = offset + i * layout_unit_bytes(units->size);
    bool ok = put_imgs_attributes(imgs, writer->request->facts);
    return H5Dclose(imgs) >= 0 && ok;
}

static bool recognise(hid_t file)
{
    return h5_has(file, "imgs") && h5_has(file, "coords");
}

static bool open_clam(struct layout_reader *reader, struct err *err)
{
    return layout_add_set(reader, "imgs", "coords", 2, 0, PATCH_UNLABELED, err) &&
           layout_get_lists(reader, err);
}

const struct layout_ops layout_clam = { "clam",    layout_list_patches, create,
                                        recognise, open_clam,           layout_read_sets };
