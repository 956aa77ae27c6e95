#include "abi.h"
#include "lanes.h"
#include "pool.h"

enum { TASK_SIZE = 1 << 14 }; /* logits of a task */

typedef struct {
    float *logits;
    int64_t count;
    float divisor, softcap;
} Job;

INLINE Lanes scaled(const Job *job, Lanes logits) {
    logits = logits / job->divisor;
    return job->softcap > 0 ? softcapped(logits, job->softcap) : logits;
}

static void scale_some(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    int64_t i = (int64_t)index * TASK_SIZE, end = i + TASK_SIZE < job->count ? i + TASK_SIZE : job->count;
    for (; i + LANES <= end; i += LANES) store(job->logits + i, scaled(job, load(job->logits + i)));
    for (; i < end; i++) job->logits[i] = scaled(job, all(job->logits[i]))[0];
}

void scale_logits(float *logits, int64_t count, float divisor, float softcap, Pool *pool) {
    Job job = {logits, count, divisor, softcap};
    parallel_for(pool, scale_some, &job, (int32_t)((count + TASK_SIZE - 1) / TASK_SIZE));
}
