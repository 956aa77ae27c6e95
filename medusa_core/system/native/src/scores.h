/* What the vocabulary's scores pass through behind their projection. */

#ifndef MEDUSA_SCORES_H
#define MEDUSA_SCORES_H

#include <stdint.h>

#include "pool.h"

/* Scores divided by `divisor`, then, where `cap` isn't 0, within ±cap; in place. [count] */
void bound_scores(float *scores, int64_t count, float divisor, float cap, Pool *pool);

#endif
