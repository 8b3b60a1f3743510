/* tiff_entry.h: single entries of a TIFF directory, for what libtiff does not give: rational
 * numbers in full precision, and whether a private tag is there. */
#ifndef SLIDE_TIFF_ENTRY_H
#define SLIDE_TIFF_ENTRY_H
#include <stdbool.h>
#include <stdint.h>

/* `directory` is a position in the file. */
bool tiff_entry_exists(int fd, uint64_t directory, uint16_t tag);

/* False if there is no such tag, if it is not of the type RATIONAL, or if it is not finite. */
bool tiff_entry_rational(int fd, uint64_t directory, uint16_t tag, double *out);
#endif
