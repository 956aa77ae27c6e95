// Types and device functions that every kernel uses: half precision, tensor cores, dp4a, warp sums.
//
// No CUDA header is included, so that NVRTC alone compiles the kernels (build.py). With HOST_SHIM
// the same sources are compiled by a C++ compiler and run on the CPU, a fiber for each thread; the
// shim defines what this file defines for cards.
#pragma once
#ifdef HOST_SHIM
#include "host_shim.h"
#else

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define HAS_TENSOR_CORES (__CUDA_ARCH__ >= 750)

__device__ __forceinline__ float half_to_float(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}

__device__ __forceinline__ u16 float_to_half(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

// a · b + c of two halves each, rounded once.
__device__ __forceinline__ u32 fma_halves(u32 a, u32 b, u32 c) {
#if __CUDA_ARCH__ >= 530
  u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#else
#error "Cards before Pascal are not supported."
#endif
}

// c + the sum of four products of signed bytes.
__device__ __forceinline__ int dot_bytes(u32 a, u32 b, int c) {
  return __dp4a((int)a, (int)b, c);
}

// Four bytes of the eight in (low, high), chosen by the nibbles of `selector`.
__device__ __forceinline__ u32 permute_bytes(u32 low, u32 high, u32 selector) {
  return __byte_perm(low, high, selector);
}

__device__ __forceinline__ float shuffle_xor(float x, int lanes) {
  return __shfl_xor_sync(0xffffffffu, x, lanes);
}

__device__ __forceinline__ float shuffle_from(float x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}

#if HAS_TENSOR_CORES
// d += a · b: a 16×16 (row-major fragments), b 16×8 (column-major), halves; sums are float32.
__device__ __forceinline__ void mma_16x8x16(float* d, const u32* a, u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
#endif  // HAS_TENSOR_CORES
#endif  // HOST_SHIM

// The value of a lane's neighbours joined over the whole warp, always in the same order.
__device__ __forceinline__ float sum_warp(float x) {
  for (int lanes = 16; lanes; lanes >>= 1) x += shuffle_xor(x, lanes);
  return x;
}

__device__ __forceinline__ float max_warp(float x) {
  for (int lanes = 16; lanes; lanes >>= 1) x = fmaxf(x, shuffle_xor(x, lanes));
  return x;
}

// The same for a block of 256 threads; `of_warps` has eight numbers in shared memory.
__device__ __forceinline__ float sum_block(float x, float* of_warps) {
  x = sum_warp(x);
  __syncthreads();  // an earlier sum has been read
  if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x >> 5] = x;
  __syncthreads();
  x = 0;
  for (int i = 0; i < 8; i++) x += of_warps[i];
  return x;
}

__device__ __forceinline__ float max_block(float x, float* of_warps) {
  x = max_warp(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x >> 5] = x;
  __syncthreads();
  for (int i = 0; i < 8; i++) x = fmaxf(x, of_warps[i]);
  return x;
}

// The smallest power of two that is at least x.
__device__ __forceinline__ float power_of_two(float x) {
  int exponent = 0;
  frexpf(x, &exponent);
  return ldexpf(1, max(exponent, -100));  // the bound keeps tiny numbers from a division by zero
}

__device__ __forceinline__ u32 pack_halves(float low, float high) {
  return (u32)float_to_half(low) | (u32)float_to_half(high) << 16;
}

// Numbers of activations, residuals and results: the dtype that the model computes in.
// PREPARED: scaled halves that rows_mma reads; see prepared_place. QUANTIZED: see store_quantized.
enum Dtype { FLOAT32 = 0, FLOAT16 = 1, BFLOAT16 = 2, PREPARED = 3, QUANTIZED = 4 };

// rows_mma reads eight neighbours in the order 0 2 1 3 4 6 5 7 (load_halves).
__device__ __forceinline__ u64 prepared_place(u64 index) {
  u64 of_eight = index & 7;
  return index - of_eight + ((of_eight & 4) | (of_eight & 1) << 1 | (of_eight >> 1 & 1));
}

__device__ __forceinline__ float load_number(const void* numbers, int dtype, u64 index) {
  if (dtype == FLOAT32) return ((const float*)numbers)[index];
  u16 bits = ((const u16*)numbers)[index];
  if (dtype == FLOAT16) return half_to_float(bits);
  union { u32 bits; float number; } word;
  word.bits = (u32)bits << 16;
  return word.number;
}

__device__ __forceinline__ void store_number(void* numbers, int dtype, u64 index, float number) {
  if (dtype == FLOAT32) {
    ((float*)numbers)[index] = number;
  } else if (dtype == FLOAT16) {
    ((u16*)numbers)[index] = float_to_half(number);
  } else {  // to the nearest, ties to even; NaN stays NaN
    union { float number; u32 bits; } word;
    word.number = number;
    u32 rounded = (word.bits + 0x7fffu + (word.bits >> 16 & 1)) >> 16;
    ((u16*)numbers)[index] = number == number ? (u16)rounded : (u16)0x7fc0;
  }
}

// Writes the numbers of a warp, 32 neighbours of a row, as bytes with one scale, for rows_dot.
__device__ __forceinline__ void store_quantized(void* codes, float* scales, u64 at, float number) {
  float scale = max_warp(fabsf(number)) / 127;
  ((signed char*)codes)[at] = (signed char)(scale ? rintf(number / scale) : 0);
  if ((at & 31) == 0) scales[at / 32] = scale;
}

// Two numbers of 16 bits as a pair of halves.
__device__ __forceinline__ u32 pair_as_halves(u32 pair, int dtype) {
  if (dtype == FLOAT16) return pair;
  union { u32 bits; float number; } low, high;
  low.bits = pair << 16;
  high.bits = pair & 0xffff0000u;
  return pack_halves(low.number, high.number);
}

// Two-byte reads of what files align to two bytes only.
__device__ __forceinline__ u32 load_word(const u8* bytes) {
  const u16* halves = (const u16*)bytes;
  return (u32)halves[0] | (u32)halves[1] << 16;
}
