/* phantom_pen.h: which slides have pen marks on them. */
#ifndef PHANTOM_PHANTOM_PEN_H
#define PHANTOM_PHANTOM_PEN_H
#include "phantom/phantom_scene.h"

/* SOME: as the scene was made, on two slides of five, whatever is on them. NONE: on no slide.
 * TUMOR: blue ink back and forth across every metastasis, so that most patches of tumour contain
 * some, and on no other slide: a confounder. */
enum phantom_pen_rule { PEN_SOME, PEN_NONE, PEN_TUMOR };
extern const char *const phantom_pen_names[]; /* NULL-terminated */

void phantom_pen_apply(struct phantom_scene *scene, enum phantom_pen_rule rule);
#endif
