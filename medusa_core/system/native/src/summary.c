#include "summary.h"

#include "best.h"
#include "softmax.h"

void probabilities(const float *scores, int64_t columns, const int32_t *rows,
                   const int32_t *places, int32_t count, float *chances) {
    for (int32_t i = 0, next = 0; i < count; i = next) {
        const float *row = scores + rows[i] * columns;
        float top = row[places[i]];
        for (next = i + 1; next < count && rows[next] == rows[i]; next++)
            top = row[places[next]] > top ? row[places[next]] : top;
        Softmax whole = softmax_of(row, columns, top);
        for (int32_t j = i; j < next; j++) chances[j] = chance(row[places[j]], whole);
    }
}

void read_choices(const float *scores, int64_t columns, const int32_t *rows, int32_t count,
                  float *chances) {
    const int32_t *places = rows + count;
    float *other_chances = chances + count;
    int32_t *others = (int32_t *)(other_chances + count * FEW);
    for (int32_t r = 0; r < count; r++) {
        const float *row = scores + rows[r] * columns;
        Softmax whole = softmax_of(row, columns, row[places[r]]);
        float top_scores[FEW + 1];
        int32_t best[FEW + 1];
        best_few(row, columns, FEW + 1, top_scores, best);
        chances[r] = chance(row[places[r]], whole);
        for (int k = 0, found = 0; found < FEW; k++) {
            if (best[k] == places[r]) continue;
            other_chances[r * FEW + found] = chance(top_scores[k], whole);
            others[r * FEW + found++] = best[k];
        }
    }
}
