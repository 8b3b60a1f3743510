/* dnnl_version.c: see dnnl_version.h. */
#include "net/plan/dnnl_version.h"

#include <stdio.h>
#include <dnnl.h>

static const char *isa_name(void)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        { dnnl_cpu_isa_sse41, "SSE4.1" },
        { dnnl_cpu_isa_avx, "AVX" },
        { dnnl_cpu_isa_avx2, "AVX2" },
        { dnnl_cpu_isa_avx2_vnni, "AVX2 VNNI" },
        { dnnl_cpu_isa_avx512_core, "AVX-512" },
        { dnnl_cpu_isa_avx512_core_vnni, "AVX-512 VNNI" },
        { dnnl_cpu_isa_avx512_core_bf16, "AVX-512 BF16" },
        { dnnl_cpu_isa_avx512_core_amx, "AVX-512 AMX" },
    };
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].isa == isa)
            return names[i].name;
    return "plain code";
}

void kernels_version(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    const char *threads = version->cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                          : version->cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
                                                                     : "one thread";
    snprintf(text, size, "%d.%d.%d, %s, %s", version->major, version->minor, version->patch,
             isa_name(), threads);
}

int kernels_version_fits(void)
{
    return dnnl_version()->major == DNNL_VERSION_MAJOR;
}
