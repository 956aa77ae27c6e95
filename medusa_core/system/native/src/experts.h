/* MLPs of which each row passes through a few, chosen by a router. */

#ifndef MEDUSA_EXPERTS_H
#define MEDUSA_EXPERTS_H

#include <stdint.h>

#include "gate.h"
#include "linear.h"
#include "pool.h"

typedef struct {
    Linear router;
    const Linear *gate_ups, *downs; /* of every expert */
    int32_t count, chosen, inner;
    int32_t normalises;    /* the shares of those chosen add up to one */
    int32_t chooses_first; /* shares are those among the chosen ones, not among all */
    int32_t packed_width; /* numbers of a row that the widest of its layers needs room for */
} Experts;

/* Floats that `run_experts` needs. */
int64_t experts_scratch(const Experts *experts, int32_t hidden, int32_t rows);

/* Each row through its experts, added in the order of their numbers with the shares that its scores
   give them. [rows, hidden] → [rows, hidden] */
void run_experts(Pool *pool, const Experts *experts, const Gate *gate, int32_t hidden, const float *x,
                 int32_t rows, float *scratch, float *y);

#endif
