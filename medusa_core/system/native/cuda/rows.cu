// Quantized weights times the few rows of a token tree: y = x · Wᵀ.
//
// rows_mma: tensor cores (sm_75 and later), 1 to 64 rows. Every output is summed in one order,
//     whatever the number of rows, so that verifying drafts never changes a token. The order depends
//     on the number of warps, which is chosen for a layer (tuning.py), never for a number of rows.
// rows_dot: dp4a over activations in int8 (sm_61, and cards of sm_75 without tensor cores), with
//     the same property. The order depends on `split`.
// dequantize: weights as numbers, for prompts, which cuBLAS multiplies.
#include "weights.cuh"

enum Activation { NONE = 0, SILU = 1, GELU_TANH = 2 };

__device__ __forceinline__ float activate(int activation, float gate, float up) {
  if (activation == SILU) return gate / (1 + expf(-gate)) * up;
  float inner = 0.7978845608f * (gate + 0.044715f * gate * gate * gate);
  return 0.5f * gate * (1 + tanhf(inner)) * up;
}

// Output n with its bias: the activation of gate and up, or the value.
__device__ __forceinline__ float finish_output(
    const float* bias, int activation, int n, int outputs, float value, float up) {
  if (bias) value += bias[n];
  return activation ? activate(activation, value, bias ? up + bias[outputs + n] : up) : value;
}

// Writes a finished output and the residual. PREPARED outputs are divided by out_scales[row].
__device__ __forceinline__ void write_output(
    void* y, const void* residual, const float* out_scales, int dtype, int row, int n, int stride,
    float value) {
  u64 at = (u64)row * stride + n;
  if (dtype == PREPARED) {
    ((u16*)y)[prepared_place(at)] = float_to_half(value / out_scales[row]);
    return;
  }
  if (residual) value += load_number(residual, dtype, at);
  store_number(y, dtype, at, value);
}

#if HAS_TENSOR_CORES
// Activations as halves for rows_mma: each row is scaled by a power of two, so that none overflows.
//
// Launch: a block per row. prepared: [rows, columns], row_scales: [rows].
extern "C" __global__ void __launch_bounds__(256) prepare_rows(
    const void* x, int dtype, u16* prepared, float* row_scales, int columns) {
  __shared__ float largest_of_warps[8];
  int row = blockIdx.x;
  u64 first = (u64)row * columns;
  float largest = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    largest = fmaxf(largest, fabsf(load_number(x, dtype, first + i)));
  float scale = power_of_two(max_block(largest, largest_of_warps)) / 256;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    prepared[prepared_place(first + i)] = float_to_half(load_number(x, dtype, first + i) / scale);
  if (threadIdx.x == 0) row_scales[row] = scale;
}

// A warp has 16 weight rows and 8 · TILES rows of the tree. Launch: 2, 4 or 8 warps a block, which
// take the groups of columns in turn. Their sums are added in one order: warp 4 to warp 0, 5 to 1,
// 6 to 2, 7 to 3, then the first four.
//
// With an activation the weights are gate and up projection, `outputs` rows each: a warp has eight
// of both. x, row_scales: from prepare_rows or norm_rows. y, residual: rows of `stride` numbers
// each, of which these are the first `outputs`; they may be the same.
template <class Format, int TILES>
__device__ __forceinline__ void rows_mma(
    const u8* weights, const u16* x, const float* row_scales, void* y, int dtype,
    const float* bias, const void* residual, const float* out_scales, int activation, int outputs,
    int stride, int columns, int num_rows) {
  const int kSums = 4;
  __shared__ float sums[kSums][TILES * 128];  // [rows of the tree, 16 weight rows] of a warp
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  int warps = blockDim.x >> 5;
  int per_block = activation ? 8 : 16, first_output = blockIdx.x * per_block;
  // Weight rows past the last are computed from the last, and not written.
  int n0 = min(first_output + g, outputs - 1);
  int n1 = activation ? outputs + n0 : min(first_output + g + 8, outputs - 1);
  const u8* row0 = weights + n0 * Format::row_bytes(columns);
  const u8* row1 = weights + n1 * Format::row_bytes(columns);
  int num_sub = columns / 32, num_groups = (num_sub + 7) / 8;
  float acc[TILES][4];
#pragma unroll
  for (int i = 0; i < TILES; i++)
    for (int j = 0; j < 4; j++) acc[i][j] = 0;
  for (int group = warp; group < num_groups; group += warps) {
#pragma unroll
    for (int sub = 0; sub < 8; sub++) {
      if (8 * group + sub >= num_sub) break;
      u32 h0[4], h1[4];
      load_halves<Format>(row0, group, sub, t, h0);
      load_halves<Format>(row1, group, sub, t, h1);
      u32 first[4] = {h0[0], h1[0], h0[1], h1[1]}, second[4] = {h0[2], h1[2], h0[3], h1[3]};
      const u16* at = x + group * 256 + sub * 32 + 8 * t;
#pragma unroll
      for (int i = 0; i < TILES; i++) {
        int row = 8 * i + g;
        uint4 halves = {0, 0, 0, 0};
        if (row < num_rows) halves = *(const uint4*)(at + (u64)row * columns);
        mma_16x8x16(acc[i], first, halves.x, halves.y);
        mma_16x8x16(acc[i], second, halves.z, halves.w);
      }
    }
  }
  float* own = sums[warp % kSums] + 32 * t + g;
  int top = warps > kSums ? kSums : 0;
#pragma unroll 1
  for (int first = top; first >= 0; first -= kSums) {  // warps 4 to 7, if any, before the others
    if ((warp & kSums) == first) {
#pragma unroll
      for (int i = 0; i < TILES; i++)
        for (int j = 0; j < 4; j++) {
          float* at = own + 128 * i + 16 * (j & 1) + 8 * (j >> 1);
          *at = first < top ? *at + acc[i][j] : acc[i][j];
        }
    }
    __syncthreads();
  }
#pragma unroll 1
  for (int at = threadIdx.x; at < num_rows * per_block; at += blockDim.x) {
    int row = at / per_block, place = at % per_block, n = first_output + place;
    if (n >= outputs) continue;
    float scale = row_scales[row] / kWeightFactor, value = 0, up = 0;
#pragma unroll
    for (int w = 0; w < kSums; w++) {
      if (w >= warps) break;
      value += sums[w][row * 16 + place];
      if (activation) up += sums[w][row * 16 + place + 8];
    }
    value = finish_output(bias, activation, n, outputs, value * scale, up * scale);
    write_output(y, residual, out_scales, dtype, row, n, stride, value);
  }
}

#define ROWS_MMA(FORMAT, NAME, TILES, ROWS)                                                   \
  extern "C" __global__ void __launch_bounds__(256, 1) rows_mma_##NAME##_##ROWS(                 \
      const u8* weights, const u16* x, const float* row_scales, void* y, int dtype,           \
      const float* bias, const void* residual, const float* out_scales, int activation,       \
      int outputs, int stride, int columns, int num_rows) {                                   \
    rows_mma<FORMAT, TILES>(weights, x, row_scales, y, dtype, bias, residual, out_scales,     \
                            activation, outputs, stride, columns, num_rows);                  \
  }
#define ALL_ROWS_MMA(FORMAT, NAME)                                    \
  ROWS_MMA(FORMAT, NAME, 1, 8) ROWS_MMA(FORMAT, NAME, 2, 16)          \
  ROWS_MMA(FORMAT, NAME, 4, 32) ROWS_MMA(FORMAT, NAME, 8, 64)
ALL_ROWS_MMA(Q4_K, q4_k)
ALL_ROWS_MMA(Q5_K, q5_k)
ALL_ROWS_MMA(Q6_K, q6_k)
ALL_ROWS_MMA(Q4_0, q4_0)
ALL_ROWS_MMA(Q8_0, q8_0)
ALL_ROWS_MMA(Nf4, nf4_0)
#endif  // HAS_TENSOR_CORES

// Activations in int8 for rows_dot: a scale for every 32. Launch: a warp per sub-block of a row.
extern "C" __global__ void __launch_bounds__(128) quantize_rows(
    const void* x, int dtype, signed char* codes, float* scales, int num_blocks) {
  int block = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (block >= num_blocks) return;
  u64 at = (u64)block * 32 + lane;
  store_quantized(codes, scales, at, load_number(x, dtype, at));
}

// Sums of one weight row with each row of the tree, of the groups part, part + split, …; eight
// sub-blocks a warp, four lanes for each. Returns the sum of row `lane`.
template <class Format, int ROWS>
__device__ __forceinline__ float dot_row(
    const u8* row, const u32* codes, const float* scales, int columns, int num_rows, int part,
    int split) {
  int lane = threadIdx.x & 31, sub = lane >> 2, t = lane & 3, num_sub = columns / 32;
  float sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) sums[r] = 0;
#pragma unroll 2
  for (int group = part; group < (num_sub + 7) / 8; group += split) {
    int block = 8 * group + sub;
    if (block >= num_sub) break;
    Eight of = Format::load(row, group, sub, t);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      if (r >= num_rows) break;
      uint2 x = *(const uint2*)(codes + ((u64)r * num_sub + block) * 8 + 2 * t);
      int dot = dot_bytes(of.codes[1], x.y, dot_bytes(of.codes[0], x.x, 0));
      int sum = dot_bytes(0x01010101u, x.y, dot_bytes(0x01010101u, x.x, 0));
      sums[r] += scales[(u64)r * num_sub + block] * (of.scale * dot - of.offset * sum);
    }
  }
  float of_lane = 0;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    float sum = sum_warp(sums[r]);
    if (lane == r) of_lane = sum;
  }
  return of_lane;
}

// `split` warps of a block have one output: one weight row, or with an activation its gate and its
// up row. Their sums are added in the order of the warps.
//
// Launch: up to 8 warps a block, for as many outputs as they have at a time, or for 32 that become
// QUANTIZED. More than ROWS rows of the tree are in neighbouring blocks, which read the same weights.
template <class Format, int ROWS>
__device__ __forceinline__ void rows_dot(
    const u8* weights, const u32* codes, const float* scales, void* y, int dtype,
    const float* bias, const void* residual, float* out_scales, int activation, int outputs,
    int stride, int columns, int num_rows, int split) {
  __shared__ float partial[8][2][ROWS], finished[ROWS][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  int chunks = (num_rows + ROWS - 1) / ROWS, first = blockIdx.x % chunks * ROWS;
  int count = min(ROWS, num_rows - first), part = warp % split, at_a_time = warps / split;
  int per_block = dtype == QUANTIZED ? 32 : at_a_time;
  int first_output = blockIdx.x / chunks * per_block;
  codes += (u64)first * columns / 4;
  scales += (u64)first * columns / 32;
  u64 bytes = Format::row_bytes(columns);
#pragma unroll 1
  for (int i = warp / split; i < per_block; i += at_a_time) {
    int n = min(first_output + i, outputs - 1);  // past the last: computed, but not written
    float value = 0, up = 0;
#pragma unroll 1
    for (int half = 0; half <= (activation != 0); half++) {
      const u8* row = weights + (half * outputs + n) * bytes;
      float sum = dot_row<Format, ROWS>(row, codes, scales, columns, count, part, split);
      if (half) up = sum; else value = sum;
    }
    if (split > 1) {
      if (lane < ROWS) {
        partial[warp][0][lane] = value;
        partial[warp][1][lane] = up;
      }
      __syncthreads();
      value = up = 0;
      for (int w = warp - part; w < warp - part + split && lane < ROWS; w++) {
        value += partial[w][0][lane];
        up += partial[w][1][lane];
      }
      __syncthreads();  // before they are overwritten
    }
    if (part || lane >= count || first_output + i >= outputs) continue;
    value = finish_output(bias, activation, n, outputs, value, up);
    if (dtype == QUANTIZED)
      finished[lane][i] = value;
    else
      write_output(y, residual, out_scales, dtype, first + lane, n, stride, value);
  }
  if (dtype != QUANTIZED) return;
  __syncthreads();
  for (int r = warp; r < count; r += warps) {
    u64 at = (u64)(first + r) * stride + first_output + lane;
    store_quantized(y, out_scales, at, finished[r][lane]);
  }
}

#define ROWS_DOT(FORMAT, NAME, ROWS)                                                          \
  extern "C" __global__ void __launch_bounds__(256, 1) rows_dot_##NAME##_##ROWS(                 \
      const u8* weights, const u32* codes, const float* scales, void* y, int dtype,           \
      const float* bias, const void* residual, float* out_scales, int activation,             \
      int outputs, int stride, int columns, int num_rows, int split) {                        \
    rows_dot<FORMAT, ROWS>(weights, codes, scales, y, dtype, bias, residual, out_scales,      \
                           activation, outputs, stride, columns, num_rows, split);            \
  }
#define ALL_ROWS_DOT(FORMAT, NAME)                           \
  ROWS_DOT(FORMAT, NAME, 1) ROWS_DOT(FORMAT, NAME, 4) ROWS_DOT(FORMAT, NAME, 8)
ALL_ROWS_DOT(Q4_K, q4_k)
ALL_ROWS_DOT(Q5_K, q5_k)
ALL_ROWS_DOT(Q6_K, q6_k)
ALL_ROWS_DOT(Q4_0, q4_0)
ALL_ROWS_DOT(Q8_0, q8_0)
ALL_ROWS_DOT(Nf4, nf4_0)

// Weights as numbers of a dtype. Launch: four lanes for each sub-block of 32 weights.
template <class Format>
__device__ __forceinline__ void dequantize(
    const u8* weights, void* numbers, int dtype, int rows, int columns) {
  u64 index = ((u64)blockIdx.x * blockDim.x + threadIdx.x) >> 2;
  int num_sub = columns / 32, t = threadIdx.x & 3;
  if (index >= (u64)rows * num_sub) return;
  int row = (int)(index / num_sub), block = (int)(index % num_sub);
  Eight of = Format::load(weights + row * Format::row_bytes(columns), block >> 3, block & 7, t);
  for (int i = 0; i < 8; i++) {
    int code = of.codes[i >> 2] >> 8 * (i & 3) & 255;
    if (Format::kIsSigned) code = (signed char)code;
    store_number(numbers, dtype, index * 32 + 8 * t + i, of.scale * code - of.offset);
  }
}

#define DEQUANTIZE(FORMAT, NAME)                                                   \
  extern "C" __global__ void __launch_bounds__(128) dequantize_##NAME(             \
      const u8* weights, void* numbers, int dtype, int rows, int columns) {        \
    dequantize<FORMAT>(weights, numbers, dtype, rows, columns);                    \
  }
DEQUANTIZE(Q4_K, q4_k)
DEQUANTIZE(Q5_K, q5_k)
DEQUANTIZE(Q6_K, q6_k)
DEQUANTIZE(Q4_0, q4_0)
DEQUANTIZE(Q8_0, q8_0)
DEQUANTIZE(Nf4, nf4_0)
