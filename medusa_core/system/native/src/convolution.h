/* A short convolution of each row over its ancestors and the last committed rows. */

#ifndef MEDUSA_CONVOLUTION_H
#define MEDUSA_CONVOLUTION_H

#include "lanes.h"

#include <stddef.h>

/* Inputs of a sequence's rows, a row every `stride` floats. */
typedef struct {
    const Tree *tree;
    ConvState memory; /* inputs of the committed rows; takes those of these rows */
    const float *x;
    int64_t stride;
    int32_t is_decided; /* all rows will be committed: a chain */
} Inputs;

/* Find what the taps of a row read: its ancestors, and before them committed rows.
   taps: oldest first. [kernel_size] */
void find_taps(const Convolution *conv, const Inputs *inputs, int32_t row, const float **taps);

/* Convolve a vector of channels of one row; sums are in the order of the taps. */
INLINE Lanes convolve_vector(const Convolution *conv, const float *const *taps, int64_t at) {
    Lanes total = load(taps[0] + at) * load(conv->weight + at);
    for (int64_t tap = 1; tap < conv->kernel_size; tap++)
        total = fma(load(taps[tap] + at), load(conv->weight + tap * conv->channels + at), total);
    return conv->bias == NULL ? total : total + load(conv->bias + at);
}

/* Store the inputs of some channels in the memory, after all rows have read it. Of decided rows the
   last one is stored as pending, and the others become the committed ones. */
void store_inputs(const Convolution *conv, const Inputs *inputs, int64_t begin, int64_t end);

/* y = C · conv(B · x) (LFM2).

   bcx: B, C and x of every row; B · x replaces B. [rows, 3, channels]
   y: [rows, channels], written from row `first` on. */
void convolve_gated(Pool *pool, const Convolution *conv, const Tree *tree, int32_t is_decided,
                    int32_t first, const ConvState *memory, float *bcx, float *y);

#endif
