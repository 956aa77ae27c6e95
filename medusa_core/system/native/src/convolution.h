/* A short convolution along each row's own path, and what it leaves for the rows to come. */

#ifndef MEDUSA_CONVOLUTION_H
#define MEDUSA_CONVOLUTION_H

#include <stddef.h>
#include <stdint.h>

#include "attention.h"
#include "lanes.h"
#include "pool.h"

enum { MOST_TAPS = 64 };

/* Each channel by itself; of no width where a layer doesn't convolve. */
typedef struct {
    const float *weight; /* that of the row itself is the last. [width, channels] */
    const float *bias;   /* [channels], or NULL */
    int32_t channels;    /* a multiple of the lanes */
    int32_t width;       /* up to `MOST_TAPS` */
} Convolution;

/* The inputs of a sequence's rows, a row every `stride` floats. */
typedef struct {
    const Rows *rows;
    InputMemory memory; /* behind which they stand, and which takes theirs */
    const float *x;
    int64_t stride;
    int32_t is_decided; /* all will be committed: a chain */
} Inputs;

/* What the convolution of a row reads, oldest first: of its ancestors, then of the committed rows.
   found: [width] */
void find_inputs(const Convolution *how, const Inputs *inputs, int32_t row, const float **found);

/* One vector of channels of one row. The order of the sum is that of the taps. */
INLINE Lanes convolve_vector(const Convolution *how, const float *const *found, int64_t at) {
    Lanes made = load(found[0] + at) * load(how->weight + at);
    for (int64_t tap = 1; tap < how->width; tap++)
        made = fma(load(found[tap] + at), load(how->weight + tap * how->channels + at), made);
    return how->bias == NULL ? made : made + load(how->bias + at);
}

/* Let some channels of the rows' inputs go to the memory, once nobody reads them from there. Of
   decided rows only that of the last goes there: the others become the last ones. */
void keep_inputs(const Convolution *how, const Inputs *inputs, int64_t begin, int64_t end);

/* Between two gates: y = C · conv(B · x).

   bcx: B, C and x of every row; B · x takes the place of B. [rows, 3, channels]
   y: [rows, channels], from row `first` on. */
void convolve_gated(Pool *pool, const Convolution *how, const Rows *rows, int32_t is_decided,
                    int32_t first, const InputMemory *memory, float *bcx, float *y);

#endif
