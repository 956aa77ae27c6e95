#include "abi.h"
#include "best.h"
#include "softmax.h"

void probabilities(const float *logits, int64_t columns, const int32_t *rows, const int32_t *places,
                   int32_t count, float *result) {
    for (int32_t i = 0, next = 0; i < count; i = next) {
        const float *row = logits + rows[i] * columns;
        float shift = row[places[i]];
        for (next = i + 1; next < count && rows[next] == rows[i]; next++)
            shift = row[places[next]] > shift ? row[places[next]] : shift;
        Softmax softmax = softmax_of(row, columns, shift);
        for (int32_t j = i; j < next; j++) result[j] = probability(row[places[j]], softmax);
    }
}

void read_choices(const float *logits, int64_t columns, const int32_t *rows, int32_t count, float *result) {
    const int32_t *places = rows + count;
    float *others = result + count;
    int32_t *other_places = (int32_t *)(others + count * NUM_ALTERNATIVES);
    for (int32_t r = 0; r < count; r++) {
        const float *row = logits + rows[r] * columns;
        Softmax softmax = softmax_of(row, columns, row[places[r]]);
        float best[NUM_ALTERNATIVES + 1]; /* the choice may be among them */
        int32_t best_places[NUM_ALTERNATIVES + 1];
        top_k(row, columns, NUM_ALTERNATIVES + 1, best, best_places);
        result[r] = probability(row[places[r]], softmax);
        for (int k = 0, found = 0; found < NUM_ALTERNATIVES; k++) {
            if (best_places[k] == places[r]) continue;
            others[r * NUM_ALTERNATIVES + found] = probability(best[k], softmax);
            other_places[r * NUM_ALTERNATIVES + found++] = best_places[k];
        }
    }
}
