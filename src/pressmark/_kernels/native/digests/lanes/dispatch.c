/* The levels of this build and of this processor. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS
#include <cpuid.h>
#elif PM_HAVE_NEON_LEVELS && defined(__linux__)
#include <sys/auxv.h>
#elif PM_HAVE_NEON_LEVELS && defined(__APPLE__)
#include <sys/sysctl.h>
#elif PM_HAVE_NEON_LEVELS && defined(_WIN32)
#include <windows.h>
#endif

static const pm_kernel *const *const kernels_of[PM_LEVELS] = {
    [PM_PORTABLE] = pm_kernels_portable,
#if PM_HAVE_X86_LEVELS
    [PM_AVX2] = pm_kernels_avx2,
    [PM_AVX512] = pm_kernels_avx512,
#elif PM_HAVE_NEON_LEVELS
    [PM_NEON] = pm_kernels_neon,
#if PM_HAVE_NEON_SHA
    [PM_NEON_SHA2] = pm_kernels_neon_sha2,
    [PM_NEON_SHA3] = pm_kernels_neon_sha3,
#endif
#endif
};

const pm_kernel *pm_find_kernel(pm_level level, pm_algorithm algorithm)
{
    while (kernels_of[level] == NULL || kernels_of[level][algorithm] == NULL)
        level--;
    return kernels_of[level][algorithm];
}

#if PM_HAVE_NEON_LEVELS
#if defined(__APPLE__)
static int has_feature(const char *name)
{
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}
#endif

/* The highest level whose instructions this processor has; the build may lack it. */
static pm_level processor_level(void)
{
    int sha2 = 0, sha3 = 0;
#if defined(__linux__)
    /* Linux's numbers: HWCAP_SHA1 and HWCAP_SHA2; HWCAP_SHA3 and HWCAP_SHA512. Older headers lack the last two. */
    const unsigned long found = getauxval(AT_HWCAP), first = 1 << 5 | 1 << 6, second = 1 << 17 | 1 << 21;
    sha2 = (found & first) == first;
    sha3 = (found & second) == second;
#elif defined(__APPLE__)
    sha2 = 1; /* every Apple processor with 64 bits */
    sha3 = has_feature("hw.optional.armv8_2_sha512") && has_feature("hw.optional.armv8_2_sha3");
#elif defined(_WIN32)
    /* PF_ARM_V8_CRYPTO_, PF_ARM_SHA3_ and PF_ARM_SHA512_INSTRUCTIONS_AVAILABLE; older headers lack the last two. */
    sha2 = IsProcessorFeaturePresent(30);
    sha3 = IsProcessorFeaturePresent(64) && IsProcessorFeaturePresent(65);
#endif
    return !sha2 ? PM_NEON : !sha3 ? PM_NEON_SHA2 : PM_NEON_SHA3;
}
#endif

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
#elif PM_HAVE_NEON_LEVELS
    return PM_HAVE_NEON_SHA ? processor_level() : PM_NEON;
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
#elif PM_HAVE_NEON_LEVELS
    return processor_level() - PM_NEON;
#else
    return 0;
#endif
}

const char *pm_level_name(pm_level level)
{
    static const char *const names[PM_LEVELS] = {
        [PM_PORTABLE] = "portable",
#if PM_HAVE_X86_LEVELS
        [PM_AVX2] = "avx2",
        [PM_AVX512] = "avx512",
#elif PM_HAVE_NEON_LEVELS
        [PM_NEON] = "neon",
        [PM_NEON_SHA2] = "neon-sha2",
        [PM_NEON_SHA3] = "neon-sha3",
#endif
    };
    return (unsigned)level < PM_LEVELS ? names[level] : NULL;
}

unsigned pm_lanes(pm_level level, pm_algorithm algorithm)
{
    if ((unsigned)level >= PM_LEVELS || (unsigned)algorithm >= PM_ALGORITHMS)
        return 0;
    return pm_find_kernel(level, algorithm)->lanes;
}
