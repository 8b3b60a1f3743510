/* hematoxylin.c: see hematoxylin.h. */
#include "nuclei/hematoxylin.h"

#include <math.h>
#include "stain/stain_fit.h"

/* Optical densities of one unit of haematoxylin and of eosin (R, G, B). Ruifrok's eosin, { 0.07,
 * 0.99, 0.11 }, absorbs less red than that of most slides, whose dense stroma then seems to contain
 * haematoxylin; vectors as near to each other as some fits give amplify the noise of JPEG. */
const double hematoxylin_stains[2][3] = { { 0.651, 0.701, 0.290 }, { 0.216, 0.801, 0.558 } };

void hematoxylin_table_fill(struct hematoxylin_table *table)
{
    double unit[2][3], pseudo[2][3], density[256];
    for (int k = 0; k < 2; k++) {
        const double *v = hematoxylin_stains[k];
        double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (int c = 0; c < 3; c++)
            unit[k][c] = v[c] / length;
    }
    stain_pseudo_inverse(unit, pseudo);
    stain_density_table(density);
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            table->share[c][v] = (float)(pseudo[0][c] * density[v]);
}

void hematoxylin_of(const struct image *rgb, float *out)
{
    struct hematoxylin_table table;
    hematoxylin_table_fill(&table);
    int64_t n = rgb->width * rgb->height;
    for (int64_t i = 0; i < n; i++)
        out[i] = hematoxylin_at(&table, rgb->px + 3 * i);
}
