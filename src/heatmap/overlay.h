/* overlay.h: the picture of a heatmap over its slide while it is made: export_overlay.c paints it,
 * overlay_words.c writes the words around it. Private to this folder. */
#ifndef HEATMAP_OVERLAY_H
#define HEATMAP_OVERLAY_H
#include "base/image.h"
#include "heatmap/heatmap.h"

#define OVERLAY_MARGIN_PX 20
#define OVERLAY_TITLE_PX 64

struct overlay {
    const struct heatmap_info *info;
    int64_t class_index;
    double threshold;
    double low, high;   /* of the colours */
    struct image slide; /* the overview */
    float *scores;      /* [slide.height, slide.width]: NaN where there is no tissue */
    int32_t *winners;   /* [slide.height, slide.width]: the class of the score; NULL: one class */
    uint8_t (*colours)[3]; /* [classes], with winners */
};

/* The colour of a score, from 0 to 1 in the range, over a pixel of this grey. */
void overlay_mix(double score, double grey, uint8_t out[3]);
/* The same of a class that has the highest score. */
void overlay_mix_class(const uint8_t colour[3], double score, double grey, uint8_t out[3]);

/* Px needed below a picture of this width for the scale bar and the legend. */
int64_t overlay_legend_px(const struct overlay *overlay, int64_t width);
/* Title, scale bar and legend, around the slide. */
bool overlay_draw_words(const struct overlay *overlay, struct image *onto, struct err *err);
#endif
