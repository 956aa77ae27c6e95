#include "abi.h"
#include "best.h"
#include "lanes.h"
#include "pool.h"
#include "softmax.h"

#include <stddef.h>

/* Natural logarithm of a positive, normal number: x = m · 2^e with m near 1, and
   log m = 2 (t + t³/3 + t⁵/5 + …) with t = (m − 1) / (m + 1). */
static double natural_log(double x) {
    union {
        double number;
        uint64_t bits;
    } of = {x};
    int32_t exponent = (int32_t)(of.bits >> 52) - 1023;
    of.bits = (of.bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    if (of.number > 1.41421356237) {
        of.number *= 0.5;
        exponent++;
    }
    double t = (of.number - 1.0) / (of.number + 1.0), square = t * t, series = 0.0;
    for (int32_t n = 15; n > 0; n -= 2) series = series * square + 1.0 / n;
    return exponent * 0.69314718055994531 + 2.0 * t * series;
}

/* Gumbel noise of a uniform number. */
static float gumbel(double uniform) {
    double smallest = 2.2250738585072014e-308; /* the number may be 0, whose logarithm is infinite */
    return (float)-natural_log(-natural_log(uniform > smallest ? uniform : smallest));
}

/* Candidates of a row for being drawn: its best columns in descending order of logits. */
typedef struct {
    float logits[MAX_TOP_K], noisy[MAX_TOP_K];
    int32_t columns[MAX_TOP_K];
    int32_t count, left; /* candidates, and the first of them that pass the filters */
    int is_whole;        /* no other column passes the filters */
} Drawn;

/* Σ e^(factor · (x − first)) of the first `count` candidates' logits. */
static float sum_of_exp(const Drawn *drawn, int32_t count, float factor) {
    float total = 0;
    for (int32_t i = 0; i < count; i++)
        total += exponential(all(factor * (drawn->logits[i] - drawn->logits[0])))[0];
    return total;
}

/* Count the candidates that pass the filters, which are applied in the order of the target's. */
static void filter(Drawn *drawn, const float *row, int64_t columns, const Noise *noise) {
    float inverse = 1.0f / noise->temperature;
    drawn->left = drawn->count;
    drawn->is_whole = drawn->count == columns;
    if (noise->top_k > 0 && noise->top_k <= drawn->count) {
        drawn->left = noise->top_k;
        drawn->is_whole = 1;
    }
    if (noise->top_p < 1) {
        float total = drawn->is_whole ? sum_of_exp(drawn, drawn->left, inverse)
                                      : softmax_scaled(row, columns, drawn->logits[0], inverse).sum;
        float before = 0;
        int32_t kept = 0;
        for (; kept < drawn->left && (kept == 0 || before < noise->top_p * total); kept++)
            before += exponential(all(inverse * (drawn->logits[kept] - drawn->logits[0])))[0];
        if (kept < drawn->left) drawn->is_whole = 1;
        drawn->left = kept;
    }
    if (noise->min_p > 0) {
        float lowest = (float)natural_log(noise->min_p);
        while (drawn->left > 1 && inverse * (drawn->logits[drawn->left - 1] - drawn->logits[0]) < lowest) {
            drawn->left--;
            drawn->is_whole = 1;
        }
    }
}

/* Rank by logits over the temperature plus noise. Each probability is a softmax of these, whose
   denominator has the other columns with their mean weight. Candidates that are filtered out come last,
   with probability 0. */
static void rank_noisy(const float *row, const Ranking *ranking, const Noise *noise, int32_t *columns,
                       float *probabilities) {
    Drawn drawn;
    int32_t size = ranking->num_columns, k = ranking->k;
    float sharpness = ranking->sharpness, inverse = 1.0f / noise->temperature;
    drawn.count = size < MAX_TOP_K ? size : MAX_TOP_K;
    top_k(row, size, drawn.count, drawn.logits, drawn.columns);
    filter(&drawn, row, size, noise);
    float top = -__builtin_inff(), total = 0;
    for (int32_t i = 0; i < drawn.left; i++) {
        int32_t column = drawn.columns[i];
        int64_t token = ranking->token_ids == NULL ? column : ranking->token_ids[column];
        drawn.noisy[i] = drawn.logits[i] * inverse + gumbel(noise->uniform[token]);
        if (drawn.noisy[i] > top) top = drawn.noisy[i];
    }
    for (int32_t i = 0; i < drawn.left; i++)
        total += exponential(all(sharpness * (drawn.noisy[i] - top)))[0];
    if (!drawn.is_whole) {
        float factor = sharpness * inverse;
        float others = softmax_scaled(row, size, drawn.logits[0], factor).sum -
                       sum_of_exp(&drawn, drawn.count, factor);
        float first = exponential(all(sharpness * (drawn.logits[0] * inverse - top)))[0];
        if (others > 0) total += ranking->tail_factor * others * first;
    }
    for (int32_t rank = 0; rank < k; rank++) {
        int32_t best = rank;
        if (rank < drawn.left) {
            for (int32_t i = rank + 1; i < drawn.left; i++)
                if (drawn.noisy[i] > drawn.noisy[best]) best = i;
            probabilities[rank] = exponential(all(sharpness * (drawn.noisy[best] - top)))[0] / total;
        } else {
            probabilities[rank] = 0;
        }
        columns[rank] = drawn.columns[best];
        drawn.columns[best] = drawn.columns[rank];
        drawn.noisy[best] = drawn.noisy[rank];
    }
}

typedef struct {
    const float *logits;
    int64_t stride;
    const Ranking *ranking;
} Job;

static void rank_row(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const Ranking *ranking = job->ranking;
    const float *row = job->logits + index * job->stride;
    int32_t *columns = ranking->columns + index * ranking->k;
    float *probabilities = ranking->probabilities + index * ranking->k;
    (void)worker;
    if (ranking->noises != NULL) {
        const Noise *noise = ranking->noises + index / ranking->rows_per_noise;
        rank_noisy(row, ranking, noise, columns, probabilities);
    } else {
        float best[MAX_TOP_K];
        top_k(row, ranking->num_columns, ranking->k, best, columns);
        Softmax softmax = softmax_of(row, ranking->num_columns, best[0]);
        for (int32_t r = 0; r < ranking->k; r++) probabilities[r] = probability(best[r], softmax);
    }
    if (ranking->tokens == NULL) return;
    int32_t *tokens = ranking->tokens + index * ranking->k;
    for (int32_t r = 0; r < ranking->k; r++)
        tokens[r] = ranking->token_ids == NULL ? columns[r] : (int32_t)ranking->token_ids[columns[r]];
}

void rank_rows(const float *logits, int64_t stride, int32_t rows, const Ranking *ranking, Pool *pool) {
    Job job = {logits, stride, ranking};
    parallel_for(pool, rank_row, &job, rows);
}
