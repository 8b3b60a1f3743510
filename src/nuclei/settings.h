/* settings.h: the settings of nuclei_find as text: "level=0.5,min_area_um2=12". */
#ifndef NUCLEI_SETTINGS_H
#define NUCLEI_SETTINGS_H
#include "nuclei/nuclei.h"

/* Changes the settings that the text names; learnt: only those that apply to networks. The error of
 * an unknown one lists all, with their defaults; of a value outside its range, the range. */
bool nuclei_settings_parse(const char *text, bool learnt, struct nuclei_settings *settings,
                           struct err *err);
/* All of them, separated by blanks. */
void nuclei_settings_text(const struct nuclei_settings *settings, char *out, size_t room);
#endif
