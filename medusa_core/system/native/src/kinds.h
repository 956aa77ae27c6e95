/* Kinds of numbers: float32, bfloat16, 8-bit whole numbers, and what blocks.h says of blocks. */

#ifndef MEDUSA_KINDS_H
#define MEDUSA_KINDS_H

enum {
    FULL, HALF, BYTE, Q4_0, Q8_0, Q4_K, Q5_K, Q6_K, WIDE, MXFP4, IQ4_NL, NF4, Q4_1, Q5_0, Q5_1,
    IQ4_XS, IQ3_S, IQ3_XXS, IQ2, IQ1
};

#endif
