// Weights in the block formats of GGUF files, as stored, and how a lane reads them.
//
// Four lanes share a row of weights: lane t of the four reads weights 8t … 8t + 7 of each sub-block
// of 32. Eight sub-blocks are a group, which is a whole block of the K-formats. A format has
//   load(row, group, sub, t): these eight weights;
//   row_bytes(columns): bytes of a stored row.
//
// Sources: ggml's block formats; QLoRA (Dettmers et al. 2023), appendix E, for NF4.
#pragma once
#include "device.cuh"

// Eight weights: weight i = scale · code i − offset. Codes are signed bytes, four in a word.
struct Eight {
  u32 codes[2];
  float scale, offset;
};

// Scales of small models come close to the smallest normal half (6e-5): this factor moves weights
// away from it. Weights beyond 1,023 would overflow; no model has any.
static const float kWeightFactor = 64;

// 1024 + n as a half has n in its low bits: codes become halves without a conversion. 1024 is
// subtracted before the product, because 1024 · scale would round the code away.
__device__ __forceinline__ u32 halves_of_codes(u32 codes, u32 scales, u32 offsets) {
  u32 whole = fma_halves(codes | 0x64006400u, 0x3c003c00u, 0xe400e400u);  // · 1 − 1024
  return fma_halves(whole, scales, offsets);
}

// Eight weights, times kWeightFactor, as the pairs (0, 2), (1, 3), (4, 6) and (5, 7): prepare_rows
// stores activations in this order, too.
template <class Format>
__device__ __forceinline__ void load_halves(const u8* row, int group, int sub, int t, u32* out) {
  Eight of = Format::load(row, group, sub, t);
  if (Format::kIsSigned) {
    of.codes[0] ^= 0x80808080u;
    of.codes[1] ^= 0x80808080u;
    of.offset += 128 * of.scale;
  }
  u32 scales = pack_halves(kWeightFactor * of.scale, kWeightFactor * of.scale);
  u32 offsets = pack_halves(-kWeightFactor * of.offset, -kWeightFactor * of.offset);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    out[2 * i] = halves_of_codes(of.codes[i] & 0x00ff00ffu, scales, offsets);
    out[2 * i + 1] = halves_of_codes(of.codes[i] >> 8 & 0x00ff00ffu, scales, offsets);
  }
}

// Q4_K and Q5_K: two halves, then eight scales and eight minimums of six bits each in twelve bytes.
__device__ __forceinline__ void load_k_scales(const u32* block, int sub, Eight* out) {
  float d = half_to_float((u16)block[0]), dmin = half_to_float((u16)(block[0] >> 16));
  int shift = 8 * (sub & 3);
  u32 a = block[1] >> shift, b = block[2] >> shift, c = block[3] >> shift;
  u32 scale = sub < 4 ? a & 63 : (c & 15) | (a >> 6 & 3) << 4;
  u32 least = sub < 4 ? b & 63 : (c >> 4 & 15) | (b >> 6 & 3) << 4;
  out->scale = d * scale;
  out->offset = dmin * least;
}

struct Q4_K {
  static const bool kIsSigned = false;
  __device__ static u64 row_bytes(int columns) { return columns / 256 * 144; }
  __device__ __forceinline__ static Eight load(const u8* row, int group, int sub, int t) {
    const u32* block = (const u32*)(row + (u64)group * 144);
    Eight out;
    load_k_scales(block, sub, &out);
    uint2 quants = *(const uint2*)(block + 4 + 8 * (sub >> 1) + 2 * t);
    out.codes[0] = quants.x >> 4 * (sub & 1) & 0x0f0f0f0fu;
    out.codes[1] = quants.y >> 4 * (sub & 1) & 0x0f0f0f0fu;
    return out;
  }
};

struct Q5_K {
  static const bool kIsSigned = false;
  __device__ static u64 row_bytes(int columns) { return columns / 256 * 176; }
  __device__ __forceinline__ static Eight load(const u8* row, int group, int sub, int t) {
    const u32* block = (const u32*)(row + (u64)group * 176);
    Eight out;
    load_k_scales(block, sub, &out);
    uint2 high = *(const uint2*)(block + 4 + 2 * t);
    uint2 quants = *(const uint2*)(block + 12 + 8 * (sub >> 1) + 2 * t);
    out.codes[0] = (quants.x >> 4 * (sub & 1) & 0x0f0f0f0fu) | (high.x >> sub & 0x01010101u) << 4;
    out.codes[1] = (quants.y >> 4 * (sub & 1) & 0x0f0f0f0fu) | (high.y >> sub & 0x01010101u) << 4;
    return out;
  }
};

struct Q6_K {  // 210 bytes: blocks are aligned to two bytes only
  static const bool kIsSigned = false;
  __device__ static u64 row_bytes(int columns) { return columns / 256 * 210; }
  __device__ __forceinline__ static Eight load(const u8* row, int group, int sub, int t) {
    const u8* block = row + (u64)group * 210;
    int half = sub >> 2, quarter = sub & 3;  // of 256 weights, of 128
    const u8* low = block + 64 * half + 32 * (quarter & 1) + 8 * t;
    const u8* high = block + 128 + 32 * half + 8 * t;
    Eight out;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      u32 lower = load_word(low + 4 * i) >> 4 * (quarter >> 1) & 0x0f0f0f0fu;
      out.codes[i] = lower | (load_word(high + 4 * i) >> 2 * quarter & 0x03030303u) << 4;
    }
    // A scale for every 16 weights.
    out.scale = half_to_float(*(const u16*)(block + 208)) * (signed char)block[192 + 2 * sub + (t >> 1)];
    out.offset = 32 * out.scale;
    return out;
  }
};

// Blocks of 32 weights: a scale, then codes of four bits, the first 16 weights in the low ones.
__device__ __forceinline__ Eight load_nibbles(const u8* row, int group, int sub, int t) {
  const u8* block = row + (u64)(8 * group + sub) * 18;
  Eight out;
  out.scale = half_to_float(*(const u16*)block);
  out.offset = 0;
#pragma unroll
  for (int i = 0; i < 2; i++)
    out.codes[i] = load_word(block + 2 + 8 * (t & 1) + 4 * i) >> 4 * (t >> 1) & 0x0f0f0f0fu;
  return out;
}

struct Q4_0 {
  static const bool kIsSigned = false;
  __device__ static u64 row_bytes(int columns) { return columns / 32 * 18; }
  __device__ __forceinline__ static Eight load(const u8* row, int group, int sub, int t) {
    Eight out = load_nibbles(row, group, sub, t);
    out.offset = 8 * out.scale;
    return out;
  }
};

struct Nf4 {
  static const bool kIsSigned = true;
  __device__ static u64 row_bytes(int columns) { return columns / 32 * 18; }
  __device__ __forceinline__ static Eight load(const u8* row, int group, int sub, int t) {
    Eight out = load_nibbles(row, group, sub, t);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      u32 nibbles = out.codes[i];
      nibbles = (nibbles | nibbles >> 4) & 0x00ff00ffu;
      nibbles = (nibbles | nibbles >> 8) & 0xffffu;  // four codes in 16 bits
      // 124 times the levels of NF4, as bytes: of all multiples a byte can hold, 124 rounds them
      // best. −124 −86 −65 −49, −35 −23 −11 0, 10 20 31 42, 55 70 90 124.
      u32 low = permute_bytes(0xcfbfaa84u, 0x00f5e9ddu, nibbles & 0x7777u);
      u32 high = permute_bytes(0x2a1f140au, 0x7c5a4637u, nibbles & 0x7777u);
      out.codes[i] = permute_bytes(low, high, 0x3210u | (nibbles & 0x8888u) >> 1);
    }
    return out;
  }
};

struct Q8_0 {
  static const bool kIsSigned = true;
  __device__ static u64 row_bytes(int columns) { return columns / 32 * 34; }
  __device__ __forceinline__ static Eight load(const u8* row, int group, int sub, int t) {
    const u8* block = row + (u64)(8 * group + sub) * 34;
    Eight out;
    out.scale = half_to_float(*(const u16*)block);
    out.offset = 0;
    out.codes[0] = load_word(block + 2 + 8 * t);
    out.codes[1] = load_word(block + 6 + 8 * t);
    return out;
  }
};
