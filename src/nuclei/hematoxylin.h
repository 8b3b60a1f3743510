/* hematoxylin.h: a pixel -> its amount of haematoxylin, in optical density, -ln(v / 255). The stain
 * vectors are fixed (those that QuPath begins with), so that a pixel means the same in every image
 * and in every tile of a slide. */
#ifndef NUCLEI_HEMATOXYLIN_H
#define NUCLEI_HEMATOXYLIN_H
#include "base/image.h"

/* Haematoxylin and eosin: their densities in R, G, B, of any length. */
extern const double hematoxylin_stains[2][3];

/* The share of every value of every channel in the amount. */
struct hematoxylin_table {
    float share[3][256];
};
void hematoxylin_table_fill(struct hematoxylin_table *table);

/* Never below 0. */
static inline float hematoxylin_at(const struct hematoxylin_table *table, const uint8_t rgb[3])
{
    float amount = table->share[0][rgb[0]] + table->share[1][rgb[1]] + table->share[2][rgb[2]];
    return amount > 0 ? amount : 0;
}

/* out [height, width]. */
void hematoxylin_of(const struct image *rgb, float *out);
#endif
