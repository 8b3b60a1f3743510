/* ncrf.c: the JSON of baidu-research/NCRF (CAMELYON16 polygons) -> regions.
 * {"positive": [{"name", "vertices": [[x, y], ...]}, ...], "negative": [...]}: tumour and
 * exclusions. */
#include "annotation/format.h"

static bool claims(const struct parsed_file *file)
{
    return json_is_object(file->json) && json_object_get(file->json, "positive");
}

static bool read_vertices(const json_t *item, struct file_place place, int meaning,
                          struct drawing *drawing, struct err *err)
{
    const json_t *vertices = json_object_get(item, "vertices");
    if (!json_is_array(vertices))
        return drawing_refuse(drawing->path, place, err, "no list of vertices");
    if (!drawing_region(drawing, meaning, place, err) || !drawing_ring(drawing, err))
        return false;
    for (size_t i = 0; i < json_array_size(vertices); i++) {
        const json_t *x = json_array_get(json_array_get(vertices, i), 0);
        const json_t *y = json_array_get(json_array_get(vertices, i), 1);
        if (!json_is_number(x) || !json_is_number(y))
            return drawing_refuse(drawing->path, place, err, "vertex %zu is not [x, y]", i + 1);
        if (!drawing_point(drawing, json_number_value(x), json_number_value(y), err))
            return false;
    }
    return true;
}

static bool read_ncrf(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    static const struct {
        const char *key, *what, *class;
    } lists[] = { { "positive", "positive region", "Tumor" },
                  { "negative", "negative region", "Exclusion" } };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_t *list = json_object_get(file->json, lists[k].key);
        if (list && !json_is_array(list))
            return err_set(err, ERR_FORMAT, "%s: \"%s\" is not a list of regions", file->path,
                           lists[k].key);
        for (size_t i = 0; i < json_array_size(list); i++) {
            struct file_place place = { lists[k].what, (int64_t)i + 1 };
            int meaning = drawing_class(drawing, lists[k].class);
            if (region_counts(meaning) &&
                !read_vertices(json_array_get(list, i), place, meaning, drawing, err))
                return false;
        }
    }
    return true;
}

const struct format format_ncrf = { "NCRF", claims, read_ncrf };
