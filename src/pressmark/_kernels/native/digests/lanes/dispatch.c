/* The levels of this build and of this processor. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS
#include <cpuid.h>
#endif

static const pm_kernel *const kernels_of[PM_LEVELS] = {
    [PM_PORTABLE] = pm_kernels_portable,
#if PM_HAVE_X86_LEVELS
    [PM_AVX2] = pm_kernels_avx2,
    [PM_AVX512] = pm_kernels_avx512,
#endif
};

const pm_kernel *pm_find_kernel(pm_level level, pm_algorithm algorithm)
{
    return &kernels_of[level][algorithm];
}

pm_level pm_best_level(void)
{
#if PM_HAVE_X86_LEVELS
    /* The run times of both compilers also check (XGETBV) whether the operating system saves the wide registers. The features
     * are those that the level files select. */
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        return PM_PORTABLE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl"))
        return PM_AVX512;
    return PM_AVX2;
#else
    return PM_PORTABLE;
#endif
}

int pm_permutes_bytes(pm_level level)
{
#if PM_HAVE_X86_LEVELS
    return level == PM_AVX512 && __builtin_cpu_supports("avx512vbmi");
#else
    (void)level;
    return 0;
#endif
}

int pm_sha_extensions(void)
{
#if PM_HAVE_X86_LEVELS
    /* Leaf 7, EBX bit 29. */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
#else
    return 0;
#endif
}

const char *pm_level_name(pm_level level)
{
    static const char *const names[PM_LEVELS] = {"portable", "avx2", "avx512"};
    return (unsigned)level < PM_LEVELS ? names[level] : NULL;
}

unsigned pm_lanes(pm_level level, pm_algorithm algorithm)
{
    if ((unsigned)level >= PM_LEVELS || (unsigned)algorithm >= PM_ALGORITHMS || kernels_of[level] == NULL)
        return 0;
    return kernels_of[level][algorithm].lanes;
}
