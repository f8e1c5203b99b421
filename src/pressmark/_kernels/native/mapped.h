/* Files mapped into memory, without dying of them.
 *
 * Whoever reads a mapped file that was truncated meanwhile, or whose disk fails, gets SIGBUS. Here a handler puts zeros
 * in the place of what cannot be read and notes it, so that the reader goes on and learns afterwards that what it read
 * is void. The handler is installed while anything is mapped, hands on whatever is not ours, and does nothing but
 * mmap(2) and atomic stores. */
#ifndef PRESSMARK_MAPPED_H
#define PRESSMARK_MAPPED_H

#if defined(__linux__) && !defined(PM_NO_MAPPED)
#define PM_MAPPED 1
#else
#define PM_MAPPED 0
#endif

#if PM_MAPPED
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PM_MAPPED_MOST 64 /* at a time; whoever comes after them reads */

typedef struct {
    uintptr_t start, end; /* 0, 0 where the slot is free */
    int spoiled;
} pm_mapped_slot;

static pm_mapped_slot pm_mapped_slots[PM_MAPPED_MOST];
static pthread_mutex_t pm_mapped_lock = PTHREAD_MUTEX_INITIALIZER;
static int pm_mapped_count;
static struct sigaction pm_mapped_before;
static uintptr_t pm_mapped_page;

static void pm_mapped_on_bus(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t)info->si_addr;
    int k, kept = errno;
    (void)context;
    if (info->si_code > 0) { /* by the kernel, not by kill(2) */
        for (k = 0; k < PM_MAPPED_MOST; k++) {
            pm_mapped_slot *slot = &pm_mapped_slots[k];
            uintptr_t start = __atomic_load_n(&slot->start, __ATOMIC_ACQUIRE);
            uintptr_t end = __atomic_load_n(&slot->end, __ATOMIC_ACQUIRE);
            if (at < start || at >= end) continue;
            at &= ~(pm_mapped_page - 1);
            if (mmap((void *)at, end - at, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
                break;
            __atomic_store_n(&slot->spoiled, 1, __ATOMIC_RELEASE);
            errno = kept;
            return;
        }
    }
    /* Not ours: the access is repeated, or the signal raised again, and meets whoever was there before. */
    sigaction(SIGBUS, &pm_mapped_before, NULL);
    if (info->si_code <= 0) raise(number);
    errno = kept;
}

static int pm_mapped_guard(void) {
    struct sigaction now, ours;
    if (sigaction(SIGBUS, NULL, &now)) return -1;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == pm_mapped_on_bus) return 0;
    pm_mapped_before = now;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = pm_mapped_on_bus;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL);
}

/* Map so many bytes of a file from its begin, and return the slot, or -1 where it must be read instead. */
static int pm_mapped_open(int descriptor, size_t size, const char **data) {
    int k, found = -1;
    void *at;
    if (!size) return -1;
    pthread_mutex_lock(&pm_mapped_lock);
    pm_mapped_page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (k = 0; k < PM_MAPPED_MOST && found < 0; k++)
        if (!pm_mapped_slots[k].start) found = k;
    if (found >= 0 && !pm_mapped_guard()) {
        at = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (at == MAP_FAILED) {
            found = -1;
        } else {
            uintptr_t length = (size + pm_mapped_page - 1) & ~(pm_mapped_page - 1);
            madvise(at, size, MADV_SEQUENTIAL);
            pm_mapped_slots[found].spoiled = 0;
            __atomic_store_n(&pm_mapped_slots[found].end, (uintptr_t)at + length, __ATOMIC_RELEASE);
            __atomic_store_n(&pm_mapped_slots[found].start, (uintptr_t)at, __ATOMIC_RELEASE);
            pm_mapped_count++;
            *data = at;
        }
    } else {
        found = -1;
    }
    pthread_mutex_unlock(&pm_mapped_lock);
    return found;
}

static int pm_mapped_spoiled(int slot) { return __atomic_load_n(&pm_mapped_slots[slot].spoiled, __ATOMIC_ACQUIRE); }

static void pm_mapped_close(int slot) {
    struct sigaction now;
    pm_mapped_slot *one = &pm_mapped_slots[slot];
    pthread_mutex_lock(&pm_mapped_lock);
    munmap((void *)one->start, one->end - one->start);
    __atomic_store_n(&one->start, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&one->end, 0, __ATOMIC_RELEASE);
    if (!--pm_mapped_count && !sigaction(SIGBUS, NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
        now.sa_sigaction == pm_mapped_on_bus)
        sigaction(SIGBUS, &pm_mapped_before, NULL);
    pthread_mutex_unlock(&pm_mapped_lock);
}

#else
#include <stddef.h>
static int pm_mapped_open(int descriptor, size_t size, const char **data) {
    (void)descriptor, (void)size, (void)data;
    return -1;
}
static int pm_mapped_spoiled(int slot) { return slot >= 0; }
static void pm_mapped_close(int slot) { (void)slot; }
#endif
#endif
