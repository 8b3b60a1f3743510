/* measure.c: nuclei_measure: a label image -> the features of its nuclei. The pixels are sorted by
 * label first, so that the time is proportional to the pixels, unless the parts of labels are far
 * apart: a hull takes time for each of its rows. */
#include <math.h>
#include <stdlib.h>
#include "nuclei/glcm.h"
#include "nuclei/hematoxylin.h"
#include "nuclei/hull.h"
#include "nuclei/nuclei.h"

const struct nucleus_feature_name nucleus_features[NUCLEUS_FEATURES] = {
    [NUCLEUS_AREA] = { "area", "area_um2", "nuclear area" },
    [NUCLEUS_PERIMETER] = { "perimeter", "perimeter_um", "nuclear perimeter" },
    [NUCLEUS_ECCENTRICITY] = { "eccentricity", "eccentricity", "nuclear eccentricity" },
    [NUCLEUS_MAJOR_AXIS] = { "major_axis", "major_axis_um", "major axis of nuclei" },
    [NUCLEUS_MINOR_AXIS] = { "minor_axis", "minor_axis_um", "minor axis of nuclei" },
    [NUCLEUS_SOLIDITY] = { "solidity", "solidity", "nuclear solidity" },
    [NUCLEUS_HEMATOXYLIN] = { "hematoxylin", "hematoxylin_od", "haematoxylin in nuclei" },
    [NUCLEUS_ASM] = { "asm", "asm", "angular second moment of nuclear texture" },
    [NUCLEUS_CONTRAST] = { "contrast", "contrast", "contrast of nuclear texture" },
    [NUCLEUS_CORRELATION] = { "correlation", "correlation", "correlation of nuclear texture" },
};

/* Texture: levels of haematoxylin of 0.1 optical density each, pairs 0.5 um apart in four
 * directions. */
enum { LEVELS = 32, ANGLES = 4 };
#define LEVELS_PER_DENSITY 10
#define PAIR_UM 0.5

struct measuring {
    const struct image *rgb;
    const struct nuclei_labels *labels;
    double mpp;
    struct hematoxylin_table table;
    uint8_t *levels; /* [height, width], of the pixels of nuclei */
    int64_t *starts; /* [n + 2]: where the pixels of a label begin; those of label n + 1: the end */
    int32_t *px;     /* sorted by label, row by row */
    struct hull_row *rows; /* [height]: room */
    struct hull_point *points;
    uint32_t counts[LEVELS * LEVELS];
};

/* Counting sort; background is left out. */
static bool sort_pixels(struct measuring *m, struct err *err)
{
    const struct nuclei_labels *l = m->labels;
    int64_t all = l->width * l->height;
    m->starts = calloc((size_t)l->n + 2, sizeof *m->starts);
    if (!m->starts)
        return err_memory(err, "nuclei");
    for (int64_t i = 0; i < all; i++) {
        if (l->labels[i] < 0 || l->labels[i] > l->n)
            return err_set(err, ERR_USAGE, "label %d where labels are from 0 to %d", l->labels[i],
                           l->n);
        if (l->labels[i])
            m->starts[l->labels[i] + 1]++;
    }
    for (int64_t k = 1; k <= l->n; k++)
        m->starts[k + 1] += m->starts[k];
    m->px = malloc((size_t)(m->starts[l->n + 1] + 1) * sizeof *m->px);
    if (!m->px)
        return err_memory(err, "nuclei");
    for (int64_t i = 0; i < all; i++)
        if (l->labels[i])
            m->px[m->starts[l->labels[i]]++] = (int32_t)i;
    for (int64_t k = (int64_t)l->n + 1; k > 1; k--) /* each has moved to its end */
        m->starts[k] = m->starts[k - 1];
    m->starts[1] = 0;
    return true;
}

static bool make_room(struct measuring *m, struct err *err)
{
    size_t height = (size_t)m->labels->height;
    m->levels = malloc((size_t)m->labels->width * height + 1);
    m->rows = malloc((height + 1) * sizeof *m->rows);
    m->points = malloc((6 * height + 1) * sizeof *m->points);
    return (m->levels && m->rows && m->points) || err_memory(err, "nuclei");
}

/* Amounts of haematoxylin: their mean over a nucleus, and the levels of its texture. */
static double take_hematoxylin(struct measuring *m, const int32_t *px, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        float amount = hematoxylin_at(&m->table, m->rgb->px + 3 * (int64_t)px[k]);
        int level = (int)(amount * LEVELS_PER_DENSITY);
        m->levels[px[k]] = (uint8_t)(level < LEVELS ? level : LEVELS - 1);
        sum += (double)amount;
    }
    return sum / (double)n;
}

static bool same(const struct nuclei_labels *l, int64_t x, int64_t y, int32_t label)
{
    return x >= 0 && x < l->width && y >= 0 && y < l->height &&
           l->labels[y * l->width + x] == label;
}

/* Of a pixel of the nucleus or not: is it one whose edge is the nucleus' edge? */
static bool on_border(const struct nuclei_labels *l, int64_t x, int64_t y, int32_t label)
{
    return same(l, x, y, label) && !(same(l, x - 1, y, label) && same(l, x + 1, y, label) &&
                                     same(l, x, y - 1, label) && same(l, x, y + 1, label));
}

/* The length of the line through the centres of the border pixels, as skimage.measure.perimeter
 * counts it (Benkrid and Crookes 2000): a border pixel counts 1, sqrt(2) or their mean, by how many
 * border pixels touch it by an edge and by a corner. Others (ends of lines, forks) count 0. */
static double perimeter_px(const struct nuclei_labels *l, const int32_t *px, int64_t n)
{
    const double root = sqrt(2.0);
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t x = px[k] % l->width, y = px[k] / l->width;
        int32_t label = l->labels[px[k]];
        if (!on_border(l, x, y, label))
            continue;
        int edges = on_border(l, x - 1, y, label) + on_border(l, x + 1, y, label) +
                    on_border(l, x, y - 1, label) + on_border(l, x, y + 1, label);
        int corners = on_border(l, x - 1, y - 1, label) + on_border(l, x + 1, y - 1, label) +
                      on_border(l, x - 1, y + 1, label) + on_border(l, x + 1, y + 1, label);
        int kind = 10 * corners + 2 * edges + 1;
        if (kind == 5 || kind == 7 || kind == 15 || kind == 17 || kind == 25 || kind == 27)
            sum += 1;
        else if (kind == 21 || kind == 33)
            sum += root;
        else if (kind == 13 || kind == 23)
            sum += (1 + root) / 2;
    }
    return sum;
}

/* Centroid, box and the axes of the ellipse with the same second moments. */
static void measure_moments(const struct measuring *m, const int32_t *px, int64_t n,
                            struct nucleus *out)
{
    int64_t width = m->labels->width, height = m->labels->height;
    double sum_x = 0, sum_y = 0, xx = 0, yy = 0, xy = 0;
    out->left = width, out->top = px[0] / width;
    out->right = 0, out->bottom = px[n - 1] / width + 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t x = px[k] % width;
        out->left = x < out->left ? x : out->left;
        out->right = x + 1 > out->right ? x + 1 : out->right;
        sum_x += (double)x, sum_y += (double)(px[k] / width);
    }
    out->x_px = sum_x / (double)n, out->y_px = sum_y / (double)n;
    out->touches_border =
        out->left == 0 || out->top == 0 || out->right == width || out->bottom == height;
    for (int64_t k = 0; k < n; k++) {
        double dx = (double)(px[k] % width) - out->x_px, dy = (double)(px[k] / width) - out->y_px;
        xx += dx * dx, yy += dy * dy, xy += dx * dy;
    }
    xx /= (double)n, yy /= (double)n, xy /= (double)n;
    double middle = (xx + yy) / 2, apart = hypot((xx - yy) / 2, xy);
    double large = middle + apart, small = middle > apart ? middle - apart : 0;
    out->features[NUCLEUS_MAJOR_AXIS] = 4 * sqrt(large) * m->mpp;
    out->features[NUCLEUS_MINOR_AXIS] = 4 * sqrt(small) * m->mpp;
    out->features[NUCLEUS_ECCENTRICITY] = large > 0 ? sqrt(1 - small / large) : 0;
}

static int64_t hull_px(struct measuring *m, const int32_t *px, int64_t n)
{
    int64_t width = m->labels->width, n_rows = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t x = px[k] % width, y = px[k] / width;
        if (n_rows == 0 || m->rows[n_rows - 1].y != y)
            m->rows[n_rows++] = (struct hull_row){ y, x, x };
        m->rows[n_rows - 1].right = x;
    }
    return hull_count_px(m->rows, n_rows, m->points);
}

/* The mean over the directions in which the nucleus has pairs. */
static void measure_texture(struct measuring *m, const struct glcm_pixels *pixels,
                            struct nucleus *out)
{
    static const double angles[ANGLES] = { 0, M_PI / 4, M_PI / 2, 3 * M_PI / 4 };
    double apart = fmax(1, round(PAIR_UM / m->mpp)), sums[3] = { 0 };
    int found = 0;
    for (int a = 0; a < ANGLES; a++) {
        int dx = (int)round(cos(angles[a]) * apart), dy = (int)round(sin(angles[a]) * apart);
        int64_t total = glcm_count(pixels, m->levels, LEVELS, dx, dy, m->counts);
        if (total == 0)
            continue;
        struct glcm_texture t = glcm_texture(m->counts, LEVELS, total);
        sums[0] += t.second_moment, sums[1] += t.contrast, sums[2] += t.correlation;
        found++;
    }
    out->features[NUCLEUS_ASM] = found ? sums[0] / found : NAN;
    out->features[NUCLEUS_CONTRAST] = found ? sums[1] / found : NAN;
    out->features[NUCLEUS_CORRELATION] = found ? sums[2] / found : NAN;
}

static void measure_one(struct measuring *m, int32_t label, struct nucleus *out)
{
    const int32_t *px = m->px + m->starts[label];
    int64_t n = m->starts[label + 1] - m->starts[label];
    *out = (struct nucleus){ .label = label, .x_px = NAN, .y_px = NAN };
    for (int f = 0; f < NUCLEUS_FEATURES; f++)
        out->features[f] = NAN;
    out->features[NUCLEUS_AREA] = (double)n * m->mpp * m->mpp;
    if (n == 0)
        return;
    measure_moments(m, px, n, out);
    out->features[NUCLEUS_PERIMETER] = perimeter_px(m->labels, px, n) * m->mpp;
    out->features[NUCLEUS_SOLIDITY] = (double)n / (double)hull_px(m, px, n);
    out->features[NUCLEUS_HEMATOXYLIN] = take_hematoxylin(m, px, n);
    measure_texture(m, &(struct glcm_pixels){ m->labels, px, n }, out);
}

static bool check(const struct image *rgb, double mpp, const struct nuclei_labels *labels,
                  struct err *err)
{
    if (rgb->channels != 3)
        return err_set(err, ERR_USAGE, "nuclei are measured in RGB images, not in grey ones");
    if (!(mpp > 0) || !isfinite(mpp))
        return err_set(err, ERR_USAGE, "%g is not a resolution in um/px", mpp);
    if (rgb->width != labels->width || rgb->height != labels->height)
        return err_set(err, ERR_USAGE,
                       "labels of %lld x %lld px do not fit an image of %lld x %lld px",
                       (long long)labels->width, (long long)labels->height, (long long)rgb->width,
                       (long long)rgb->height);
    if (rgb->width * rgb->height > INT32_MAX)
        return err_set(err, ERR_USAGE,
                       "an image of %lld x %lld px is too large for nuclei; cut it into tiles",
                       (long long)rgb->width, (long long)rgb->height);
    return true;
}

bool nuclei_measure(const struct image *rgb, double mpp, const struct nuclei_labels *labels,
                    struct nucleus **out, struct err *err)
{
    *out = NULL;
    if (!check(rgb, mpp, labels, err))
        return false;
    if (labels->n == 0)
        return true;
    struct measuring m = { .rgb = rgb, .labels = labels, .mpp = mpp };
    hematoxylin_table_fill(&m.table);
    struct nucleus *nuclei = malloc((size_t)labels->n * sizeof *nuclei);
    bool ok = (nuclei || err_memory(err, "nuclei")) && sort_pixels(&m, err) && make_room(&m, err);
    for (int32_t label = 1; ok && label <= labels->n; label++)
        measure_one(&m, label, &nuclei[label - 1]);
    if (ok)
        *out = nuclei, nuclei = NULL;
    free(nuclei);
    free(m.levels);
    free(m.starts);
    free(m.px);
    free(m.rows);
    free(m.points);
    return ok;
}
