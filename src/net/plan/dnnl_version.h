/* dnnl_version.h: which oneDNN runs the networks, for people who maintain an installation. */
#ifndef NET_PLAN_DNNL_VERSION_H
#define NET_PLAN_DNNL_VERSION_H
#include <stddef.h>

/* "2.6.3, avx512_core_vnni, OpenMP" of the library that is loaded. */
void kernels_version(char *text, size_t size);
/* Whether the loaded library has the major version that this program was built for. */
int kernels_version_fits(void);
#endif
