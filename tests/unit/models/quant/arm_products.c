/* Multiplies what a file holds, and writes the products: for processors that are imitated. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "linear.h"

int main(int count, char **names) {
    int32_t told[5]; /* kind, outputs, inputs, rows, bytes of the weights */
    FILE *from = count == 2 ? fopen(names[1], "rb") : NULL;
    if (from == NULL || fread(told, sizeof told, 1, from) != 1) return 1;
    int32_t outputs = told[1], inputs = told[2], rows = told[3], nbytes = told[4];
    uint8_t *weight = malloc((size_t)nbytes);
    float *scale = malloc(sizeof(float) * (size_t)outputs);
    float *x = malloc(sizeof(float) * (size_t)(rows * inputs));
    float *y = malloc(sizeof(float) * (size_t)(rows * outputs));
    uint32_t *packed = malloc(sizeof(float) * (size_t)(rows * inputs) * 2);
    if (fread(weight, (size_t)nbytes, 1, from) != 1) return 1;
    if (fread(scale, sizeof(float), (size_t)outputs, from) != (size_t)outputs) return 1;
    if (fread(x, sizeof(float) * (size_t)inputs, (size_t)rows, from) != (size_t)rows) return 1;
    Linear layer = {weight, NULL, scale, outputs, inputs, told[0], 0, NULL};
    linear(NULL, &layer, x, packed, rows, NULL, y);
    fwrite(y, sizeof(float), (size_t)(rows * outputs), stdout);
    return 0;
}
