#include "pool.h"

#include <stddef.h>

enum { PATIENCE = 20000 }; /* looks for work before a helper goes: about a millisecond */

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
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
    while (atomic_load_explicit(&pool->done, memory_order_acquire) < count) relax();
}

void serve(Pool *pool, int32_t worker) {
    for (int32_t idle = 0; idle < PATIENCE; idle++) {
        if (atomic_load_explicit(&pool->closed, memory_order_relaxed)) return;
        if (help(pool, worker)) idle = 0;
        relax();
    }
}
