// Rows of keys and values in a cache, a row for every slot of a head.
//
// FLOAT16 or BFLOAT16: numbers. KV_Q8_0: signed codes, then a float16 scale for every 32 of them,
// whose number is rounded up to an even one; number = scale · code. Rows begin at whole words.
#pragma once
#include "device.cuh"

enum { KV_Q8_0 = 5 };  // beside the dtypes of numbers

__device__ __forceinline__ u64 kv_row_bytes(int head_dim, int dtype) {
  return dtype == KV_Q8_0 ? head_dim + 4 * ((head_dim + 63) / 64) : 2 * head_dim;
}

// The scale of the block with a dimension, as a half.
__device__ __forceinline__ u16 kv_scale(const u8* row, int head_dim, int dim) {
  return ((const u16*)(row + head_dim))[dim / 32];
}

__device__ __forceinline__ float kv_number(const u8* row, int dtype, int head_dim, int dim) {
  if (dtype != KV_Q8_0) return load_number(row, dtype, dim);
  return (float)(signed char)row[dim] * half_to_float(kv_scale(row, head_dim, dim));
}

// Codes 0 and 1, or 2 and 3, of a word as halves: 1024 + n as a half has n in its low bits.
__device__ __forceinline__ u32 halves_of_bytes(u32 codes, bool upper) {
  u32 biased = permute_bytes(codes ^ 0x80808080u, 0x64646464u, upper ? 0x4342u : 0x4140u);
  return fma_halves(biased, 0x3c003c00u, 0xe480e480u);  // · 1 − 1152
}

// Quantizes two neighbours, dimensions 2 · pair and the next, of a row; the 16 lanes of a block call it
// together, with zeros past the last pair. NaN and infinity make the block NaN.
__device__ __forceinline__ void kv_store_pair(u8* row, int head_dim, int pair, float a, float b) {
  const float kMost = 3e38f;
  float most = fmaxf(a == a ? fabsf(a) : kMost, b == b ? fabsf(b) : kMost);
  for (int lanes = 8; lanes; lanes >>= 1) most = fmaxf(most, shuffle_xor(most, lanes));
  u16 half = float_to_half(fminf(most, 127 * 65504.0f) / 127);
  if (2 * pair >= head_dim) return;
  float scale = half_to_float(half), divisor = scale > 0 ? scale : 1;
  int low = (int)rintf(fmaxf(-127, fminf(a / divisor, 127)));
  int high = (int)rintf(fmaxf(-127, fminf(b / divisor, 127)));
  ((u16*)row)[pair] = (u16)((low & 255) | (high & 255) << 8);
  if (pair % 16 == 0) ((u16*)(row + head_dim))[pair / 16] = most < kMost ? half : (u16)0x7e00;
}
