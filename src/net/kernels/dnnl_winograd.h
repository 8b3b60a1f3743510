/* dnnl_winograd.h: 3 x 3 weights into oneDNN's Winograd layouts. */
#ifndef NET_KERNELS_DNNL_WINOGRAD_H
#define NET_KERNELS_DNNL_WINOGRAD_H
#include "net/kernels/dnnl_step.h"

/* Whether winograd_step can make this layout. */
bool winograd_knows(const dnnl_memory_desc_t *to);
/* A step from plain weights [O, I, 3, 3] to the layout `to`. */
bool winograd_step(struct plan *plan, const dnnl_memory_desc_t *to, int from, int dst,
                   struct err *err);
#endif
