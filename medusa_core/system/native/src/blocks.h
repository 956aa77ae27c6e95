/* Linear layers with weights of 4 to 8 bits in blocks of 32 inputs that share a scale, with the numbers
   of GGUF files. */

#ifndef MEDUSA_BLOCKS_H
#define MEDUSA_BLOCKS_H

#include "linear.h"

static inline int32_t is_in_blocks(int32_t type) { return type >= Q4_0; }

/* y = x Wᵀ + b + residual, see linear(); rows of y and residual are `stride` floats apart. Weights are in
   tiles of 16 outputs, the last one padded with zeros; a tile has its blocks of 32 inputs in order.

   A block: scales, then codes. Codes of 4 bits are four words for each output, 16 outputs side by side:
   the low nibbles of a word's four bytes are inputs 4i … 4i + 3, the high nibbles those 16 later. Codes
   of 5 bits are these lower four, and one more word with the fifth, of inputs 4i … 4i + 3 at bit i of
   each byte. Codes of 6 bits have two more words with the upper two, of inputs 4i … 4i + 3 at bits 2i.
   Codes of 8 bits are eight words, of four inputs each.

   Q4_0, Q8_0   a float16 scale; weight = scale (code − 8), scale (code − 128).
   Q5_0         the same of 5 bits; weight = scale (code − 16).
   Q4_1, Q5_1   two float16, scale and m; weight = scale code + m. Codes of 4 and 5 bits.
   Q4_K, Q5_K   before every eight blocks two float16, d and m; a block has two bytes, a and b;
                weight = d a code − m b. Codes of 4 and 5 bits.
   Q6_K         before every eight blocks a float16, d; a block has two signed bytes a, one for each
                half; weight = d a (code − 32).
   Q8_AFFINE    two floats, scale and min, for each half of a block; weight = scale (code − 128) − min.
                For types without a kernel of their own.

   MXFP4        a byte, e; codes of 4 bits index a table: weight = 2^(e − 128) table[code].
   IQ4_NL, NF4  a float16 scale; weight = scale table[code].
   IQ4_XS, IQ3_S, IQ3_XXS, IQ2, IQ1
                scales like those of Q6_K; codes of 4 bits index a table: weight = d a u table[code],
                with a power of two u for the type.

   Inputs are quantized to 8 bits, with a scale for each 32 of a row.

   x: NULL if `packed` has the inputs already, from a layer of the same type. */
void blocks_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                   const float *residual, float *y, int32_t stride);

#endif
