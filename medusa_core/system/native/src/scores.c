#include "scores.h"

#include "lanes.h"

enum { EACH = 1 << 14 };

typedef struct {
    float *scores;
    int64_t count;
    float divisor, cap;
} Job;

INLINE Lanes bounded(const Job *job, Lanes scores) {
    scores = scores / job->divisor;
    return job->cap > 0 ? capped(scores, job->cap) : scores;
}

static void bound_some(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    int64_t i = (int64_t)index * EACH, end = i + EACH < job->count ? i + EACH : job->count;
    for (; i + LANES <= end; i += LANES) store(job->scores + i, bounded(job, load(job->scores + i)));
    for (; i < end; i++) job->scores[i] = bounded(job, all(job->scores[i]))[0];
}

void bound_scores(float *scores, int64_t count, float divisor, float cap, Pool *pool) {
    Job job = {scores, count, divisor, cap};
    share(pool, bound_some, &job, (int32_t)((count + EACH - 1) / EACH));
}
