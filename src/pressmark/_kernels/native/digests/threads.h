/* Locks and conditions of POSIX and of Windows. */
#ifndef PRESSMARK_THREADS_H
#define PRESSMARK_THREADS_H

#include <stdint.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef SRWLOCK pm_lock;
typedef CONDITION_VARIABLE pm_condition;
#define pm_lock_init(lock) InitializeSRWLock(lock)
#define pm_lock_free(lock) ((void)(lock))
#define pm_lock_acquire(lock) AcquireSRWLockExclusive(lock)
#define pm_lock_release(lock) ReleaseSRWLockExclusive(lock)
#define pm_condition_init(condition) InitializeConditionVariable(condition)
#define pm_condition_free(condition) ((void)(condition))
#define pm_condition_signal(condition) WakeConditionVariable(condition)
#define pm_condition_broadcast(condition) WakeAllConditionVariable(condition)
#define pm_condition_wait(condition, lock) SleepConditionVariableSRW(condition, lock, INFINITE, 0)
#else
#include <pthread.h>
#include <time.h>
typedef pthread_mutex_t pm_lock;
typedef pthread_cond_t pm_condition;
#define pm_lock_init(lock) pthread_mutex_init(lock, NULL)
#define pm_lock_free(lock) pthread_mutex_destroy(lock)
#define pm_lock_acquire(lock) pthread_mutex_lock(lock)
#define pm_lock_release(lock) pthread_mutex_unlock(lock)
#define pm_condition_init(condition) pthread_cond_init(condition, NULL)
#define pm_condition_free(condition) pthread_cond_destroy(condition)
#define pm_condition_signal(condition) pthread_cond_signal(condition)
#define pm_condition_broadcast(condition) pthread_cond_broadcast(condition)
#define pm_condition_wait(condition, lock) pthread_cond_wait(condition, lock)
#endif

/* The end of a wait. */
#if defined(_WIN32)
typedef DWORD pm_deadline;
static inline pm_deadline pm_deadline_in(double seconds)
{
    return (DWORD)(seconds * 1e3);
}
/* Returns 0 if the deadline has passed. */
static inline int pm_condition_wait_until(pm_condition *condition, pm_lock *lock, const pm_deadline *deadline)
{
    return SleepConditionVariableSRW(condition, lock, *deadline, 0);
}
#else
typedef struct timespec pm_deadline;
static inline pm_deadline pm_deadline_in(double seconds)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    const int64_t nanoseconds = deadline.tv_nsec + (int64_t)(seconds * 1e9);
    deadline.tv_sec += nanoseconds / 1000000000;
    deadline.tv_nsec = nanoseconds % 1000000000;
    return deadline;
}
/* Returns 0 if the deadline has passed. */
static inline int pm_condition_wait_until(pm_condition *condition, pm_lock *lock, const pm_deadline *deadline)
{
    return pthread_cond_timedwait(condition, lock, deadline) == 0;
}
#endif

#endif
