/* A short convolution along each row's own path, and what it leaves for the rows to come. */

#ifndef MEDUSA_CONVOLUTION_H
#define MEDUSA_CONVOLUTION_H

#include <stdint.h>

#include "attention.h"
#include "pool.h"

enum { MOST_TAPS = 64 };

/* Each channel by itself; of no width where a layer doesn't convolve. */
typedef struct {
    const float *weight; /* that of the row itself is the last. [width, channels] */
    const float *bias;   /* [channels], or NULL */
    int32_t channels;    /* a multiple of the lanes */
    int32_t width;       /* up to `MOST_TAPS` */
} Convolution;

/* Between two gates: y = C · conv(B · x).

   bcx: B, C and x of every row; B · x takes the place of B. [rows, 3, channels]
   memory: the last inputs of the committed rows, and where the rows' own go. Of decided rows, which
   are a chain, only that of the last goes there: the others become the last ones.
   y: [rows, channels], from row `first` on. */
void convolve_gated(Pool *pool, const Convolution *how, const Rows *rows, int32_t is_decided,
                    int32_t first, const InputMemory *memory, float *bcx, float *y);

#endif
