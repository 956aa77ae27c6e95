/* Kinds of numbers: float32, bfloat16, 8-bit whole numbers. */

#ifndef MEDUSA_KINDS_H
#define MEDUSA_KINDS_H

enum { FULL, HALF, BYTE };

#endif
