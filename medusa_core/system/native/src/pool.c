#include "pool.h"

#include <stddef.h>

#ifdef _WIN32
__declspec(dllimport) int __stdcall SwitchToThread(void);
#else
#include <sched.h>
#endif

/* Spins; a millisecond has about 20,000.
   MAX_IDLE_SPINS: before an idle worker returns. Long enough for the pause between two passes, since
   waking a thread takes a tenth of it.
   SPINS_PER_YIELD: before the processor is offered to others. A spinning thread may keep the one that
   it waits for from running: threads that have just woken often share a core for a while. */
enum { MAX_IDLE_SPINS = 80000, SPINS_PER_YIELD = 1000 };

static void yield_core(void) {
#ifdef _WIN32
    SwitchToThread();
#else
    sched_yield();
#endif
}

static void pause_core(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void spin(int32_t spins) {
    if (spins % SPINS_PER_YIELD == SPINS_PER_YIELD - 1)
        yield_core();
    else
        pause_core();
}

/* Compute unclaimed tasks. Number of the job and count are in one word, so that a late worker can't
   claim a task of the next job by the count of this one. */
static int claim_tasks(Pool *pool, int32_t worker) {
    int has_worked = 0;
    uint64_t seen = atomic_load_explicit(&pool->claims, memory_order_acquire);
    while ((uint32_t)seen > 0) {
        if (!atomic_compare_exchange_weak_explicit(&pool->claims, &seen, seen - 1,
                                                   memory_order_acq_rel, memory_order_acquire))
            continue;
        pool->task(pool->job, (int32_t)((uint32_t)seen - 1), worker);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        has_worked = 1;
        seen = atomic_load_explicit(&pool->claims, memory_order_acquire);
    }
    return has_worked;
}

void parallel_for(Pool *pool, Task *task, void *job, int32_t count) {
    if (pool == NULL || count < 2) {
        for (int32_t i = 0; i < count; i++) task(job, i, 0);
        return;
    }
    uint64_t number = (atomic_load_explicit(&pool->claims, memory_order_relaxed) >> 32) + 1;
    pool->task = task;
    pool->job = job;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->claims, number << 32 | (uint32_t)count, memory_order_release);
    claim_tasks(pool, 0);
    for (int32_t spins = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < count; spins++)
        spin(spins);
}

void set_busy(Pool *pool, int32_t busy) {
    if (pool != NULL) atomic_store_explicit(&pool->busy, busy, memory_order_relaxed);
}

void run_worker(Pool *pool, int32_t worker) {
    int32_t idle = 0;
    for (int32_t spins = 0; idle < MAX_IDLE_SPINS; spins = (spins + 1) % SPINS_PER_YIELD) {
        if (atomic_load_explicit(&pool->closed, memory_order_relaxed)) return;
        int is_needed =
            claim_tasks(pool, worker) || atomic_load_explicit(&pool->busy, memory_order_relaxed);
        idle = is_needed ? 0 : idle + 1;
        spin(spins);
    }
}
