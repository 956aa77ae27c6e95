/* Attention of the rows of a pass over the cache, each row over what it may see. */

#ifndef MEDUSA_ATTENTION_H
#define MEDUSA_ATTENTION_H

#include <stdint.h>

#include "cache.h"
#include "pool.h"

/* The rows of a pass. Row i stands behind the `length` committed rows and its ancestors; what it
   is itself lies in slot length + i. Parents come before their children. */
typedef struct {
    int32_t rows;
    int32_t length;
    const int32_t *parents; /* −1 for what follows the committed rows directly */
    const int32_t *depths;  /* ancestors of a row */
} Rows;

/* How a layer attends. */
typedef struct {
    int32_t heads;
    int32_t window; /* tokens that a row sees, itself among them; 0 for all */
    float cap;      /* scores s become cap · tanh(s / cap); 0 for as they are */
    const float *sinks; /* scores that stand for no row, or NULL. [heads] */
} Attention;

/* Floats that `attend` needs per worker. */
int64_t attention_scratch(int32_t head_dim, int32_t length, int32_t rows);

/* q: a row every `stride` floats, scaled, heads side by side; rows from `first` on are computed.
   mixed: [rows, heads · head_dim], from row `first` on. scratch: for every worker. */
void attend(Pool *pool, const Cache *cache, int32_t layer, const Attention *how, const Rows *rows,
            int32_t first, const float *q, int32_t stride, float *mixed, float *scratch,
            int64_t scratch_size);

#endif
