/* class_colour.h: the names of classes -> their colours, the same in regions, tiles, overlays,
 * previews and reports. Common tissue classes keep their colour in every list and order; the others
 * take what is left of a palette for any colour vision (Okabe and Ito). */
#ifndef BASE_CLASS_COLOUR_H
#define BASE_CLASS_COLOUR_H
#include <stdint.h>

/* The colours of n classes, to out [n, 3]. Lists that share a common class (tumor, normal, stroma,
 * lymphoid, fat, necrosis; in any case) show it alike. The first eight classes of a list differ;
 * further ones are lighter or darker. Thread-safe. */
void class_colours(char *const *names, int64_t n, uint8_t (*out)[3]);
#endif
