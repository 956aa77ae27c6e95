#include "abi.h"
#include "best.h"

#include <stddef.h>
#include <string.h>

int32_t walk_greedy(const float *logits, int64_t columns, const int32_t *token_ids, const int32_t *parents,
                    int32_t nodes, int32_t *walked, float *summary) {
    int32_t *choices = walked + nodes;
    int32_t count = 0;
    for (int32_t node = 0; node < nodes;) {
        int64_t best = argmax(logits + node * columns, columns);
        if (best < 0) return 0;
        walked[count] = node;
        choices[count++] = (int32_t)best;
        int32_t parent = node++; /* children come after their parent */
        while (node < nodes && (parents[node] != parent || token_ids[node] != best)) node++;
    }
    memmove(walked + count, choices, count * sizeof *choices);
    if (summary != NULL) read_choices(logits, columns, walked, count, summary);
    return count;
}
