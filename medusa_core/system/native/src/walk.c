#include "walk.h"

#include <stddef.h>
#include <string.h>

#include "best.h"
#include "summary.h"

int32_t walk_best(const float *scores, int64_t columns, const int32_t *token_ids,
                  const int32_t *parents, int32_t nodes, int32_t *walked, float *read) {
    int32_t *choices = walked + nodes;
    int32_t count = 0;
    for (int32_t node = 0; node < nodes;) {
        int64_t best = best_of_row(scores + node * columns, columns);
        if (best < 0) return 0;
        walked[count] = node;
        choices[count++] = (int32_t)best;
        int32_t parent = node++;
        while (node < nodes && (parents[node] != parent || token_ids[node] != best)) node++;
    }
    memmove(walked + count, choices, count * sizeof *choices);
    if (read != NULL) read_choices(scores, columns, walked, count, read);
    return count;
}
