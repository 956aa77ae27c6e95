#include "pool.h"

#include <stddef.h>

#ifdef _WIN32
__declspec(dllimport) int __stdcall SwitchToThread(void);
#else
#include <sched.h>
#endif

/* Looks; a millisecond has about 20,000. For work, before a helper goes: the time between two turns of
   a conversation is too short to sleep in, as waking takes a tenth of it. And at anything, before
   others may have the processor: who waits may keep from running whom it waits for, as threads that
   have just woken often share a processor for a while. */
enum { PATIENCE = 80000, POLITE = 1000 };

static void let_others_run(void) {
#ifdef _WIN32
    SwitchToThread();
#else
    sched_yield();
#endif
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void look_away(int32_t looks) {
    if (looks % POLITE == POLITE - 1)
        let_others_run();
    else
        relax();
}

/* Do what is left of a job. One word holds job and count: a late helper can't claim by mistake
   from the next job what it saw of this one. */
static int help(Pool *pool, int32_t worker) {
    int helped = 0;
    uint64_t seen = atomic_load_explicit(&pool->claims, memory_order_acquire);
    while ((uint32_t)seen > 0) {
        if (!atomic_compare_exchange_weak_explicit(&pool->claims, &seen, seen - 1,
                                                   memory_order_acq_rel, memory_order_acquire))
            continue;
        pool->piece(pool->job, (int32_t)((uint32_t)seen - 1), worker);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        helped = 1;
        seen = atomic_load_explicit(&pool->claims, memory_order_acquire);
    }
    return helped;
}

void share(Pool *pool, Piece *piece, void *job, int32_t count) {
    if (pool == NULL || count < 2) {
        for (int32_t i = 0; i < count; i++) piece(job, i, 0);
        return;
    }
    uint64_t number = (atomic_load_explicit(&pool->claims, memory_order_relaxed) >> 32) + 1;
    pool->piece = piece;
    pool->job = job;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->claims, number << 32 | (uint32_t)count, memory_order_release);
    help(pool, 0);
    for (int32_t looks = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < count; looks++)
        look_away(looks);
}

void be_busy(Pool *pool, int32_t busy) {
    if (pool != NULL) atomic_store_explicit(&pool->busy, busy, memory_order_relaxed);
}

void serve(Pool *pool, int32_t worker) {
    int32_t idle = 0;
    for (int32_t looks = 0; idle < PATIENCE; looks = (looks + 1) % POLITE) {
        if (atomic_load_explicit(&pool->closed, memory_order_relaxed)) return;
        int is_needed = help(pool, worker) || atomic_load_explicit(&pool->busy, memory_order_relaxed);
        idle = is_needed ? 0 : idle + 1;
        look_away(looks);
    }
}
