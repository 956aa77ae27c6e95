/* Weights of 4, 6 or 8 bits in blocks of 32 inputs that share a scale, as GGUF files store them. */

#ifndef MEDUSA_BLOCKS_H
#define MEDUSA_BLOCKS_H

#include <stdint.h>

#include "linear.h"

enum { TILE = 16, BLOCK = 32, SUPER = 256 };

/* Is it one of the kinds in blocks? */
static inline int32_t is_in_blocks(int32_t kind) { return kind >= Q4_0; }

/* y = x Wᵀ + b + plus, as `linear` has it; a row of y and plus is `stride` long. Weights lie in tiles of 16 outputs, the last one filled up
   with zeros; a tile holds its blocks of 32 inputs one after the other.

   A block: scales, then codes. Codes of 4 bits are four words for each output, 16 outputs side by
   side: the low nibbles of a word's four bytes are inputs 4i … 4i + 3, the high ones those 16 behind
   them. Of 5 bits these are the lower four; one more such word holds the fifth, of inputs 4i … 4i + 3
   at bit i of each byte. Of 6 bits two more hold the upper two, of inputs 4i … 4i + 3 at bits 2i. Of
   8 bits there are eight words, of four inputs each.

   Q4_0, Q8_0   a float16 scale; weight = scale (code − 8), scale (code − 128).
   Q5_0         the same of 5 bits; weight = scale (code − 16).
   Q4_1, Q5_1   two float16, scale and m; weight = scale code + m. Codes of 4 and 5 bits.
   Q4_K, Q5_K   before every eight blocks two float16, d and m; a block has two bytes, a and b;
                weight = d a code − m b. Codes of 4 and 5 bits.
   Q6_K         before every eight blocks a float16, d; a block has two signed bytes a, one for each
                half; weight = d a (code − 32).
   WIDE         of each half of a block two floats; weight = scale (code − 128) − least.

   MXFP4        a byte, e; codes of 4 bits are places in a table: weight = 2^(e − 128) table[code].
   IQ4_NL, NF4  a float16 scale; weight = scale table[code].
   IQ4_XS, IQ3_S, IQ3_XXS, IQ2, IQ1
                scales as of Q6_K; codes of 4 bits are places in a table: weight = d a u table[code],
                where u is a power of two of the kind.

   Inputs are rounded to 8 bits, each 32 of a row by their own largest number. */
void blocks_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                   const float *plus, float *y, int32_t stride);

#endif
