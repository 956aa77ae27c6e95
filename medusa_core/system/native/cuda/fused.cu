// What a block does between its products: norms, and the rotation of queries and keys.
//
// norm_rows: the residual's update and RMSNorm, and the rows as the next product reads them.
// rotate_rows: norms of heads, RoPE, and keys and values into the cache.
//
// Sources: RMSNorm (Zhang and Sennrich 2019), RoFormer (Su et al. 2021).
#include "kv.cuh"

// Launch: a block per row. x: [rows, columns].
//
// update, post_weight: x becomes x + RMSNorm(update) · post_weight first; or null.
// prepared, row_scales: halves for rows_mma; codes, code_scales: bytes for rows_dot; y: numbers of
// `dtype`. Each may be null.
// product_scales: scales of PREPARED outputs of an activation of gate and up, whose products with
// a row are at most ‖row‖ · slope + offset by the inequality of Cauchy and Schwarz; or null.
extern "C" __global__ void __launch_bounds__(256) norm_rows(
    void* x, int dtype, const void* update, const float* post_weight, const float* weight,
    u16* prepared, float* row_scales, float* product_scales, signed char* codes,
    float* code_scales, void* y, int columns, double eps, double slope, double offset) {
  __shared__ float of_warps[8];
  u64 first = (u64)blockIdx.x * columns;
  float squares = 0, largest = 0;
  if (update) {
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
      float number = load_number(update, dtype, first + i);
      squares += number * number;
    }
    float factor = rsqrtf(sum_block(squares, of_warps) / columns + (float)eps);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
      float number = load_number(update, dtype, first + i) * factor * post_weight[i];
      store_number(x, dtype, first + i, load_number(x, dtype, first + i) + number);
    }
    squares = 0;
  }
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float number = load_number(x, dtype, first + i);
    squares += number * number;
  }
  float factor = rsqrtf(sum_block(squares, of_warps) / columns + (float)eps);
  squares = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float number = load_number(x, dtype, first + i) * factor * weight[i];
    squares += number * number;
    largest = fmaxf(largest, fabsf(number));
  }
  squares = sum_block(squares, of_warps);
  float scale = power_of_two(max_block(largest, of_warps)) / 256;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float number = load_number(x, dtype, first + i) * factor * weight[i];
    if (prepared) prepared[prepared_place(first + i)] = float_to_half(number / scale);
    if (y) store_number(y, dtype, first + i, number);
    // `columns` is a multiple of 32: a warp has all lanes here.
    if (codes) store_quantized(codes, code_scales, first + i, number);
  }
  if (threadIdx.x) return;
  if (prepared) row_scales[blockIdx.x] = scale;
  if (product_scales) {  // the largest product of gate and up becomes at most 32,768
    float most = sqrtf(squares) * (float)slope + (float)offset;
    product_scales[blockIdx.x] = power_of_two(most * most) / 32768;
  }
}

// A warp per head of [rows, q heads + 2 · kv heads, head_dim], head_dim a multiple of 2.
//
// norm_weights: [q heads + kv heads, head_dim], or null. rotations: [positions, head_dim / 2]
// complex, or null. positions, slots: [rows]. step: see attention.cu. q: [rows, q heads, head_dim]
// float32, scaled. Keys and values go to the slots of the layer's cache, as rows of kv.cuh.
extern "C" __global__ void __launch_bounds__(128) rotate_rows(
    const void* qkv, int dtype, const float* norm_weights, const float2* rotations,
    const long long* step, const long long* positions, const long long* slots, float* q,
    int kv_dtype, int layer, int rows, int q_heads, int kv_heads, int head_dim, double scale,
    double eps) {
  const int kMostPairs = 4;  // head_dim up to 256
  int lane = threadIdx.x & 31, heads = q_heads + 2 * kv_heads;
  int place = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  if (place >= rows * heads) return;
  int row = place / heads, head = place % heads, pairs = head_dim / 2;
  u64 from = (u64)place * head_dim;
  float numbers[kMostPairs][2], squares = 0;
#pragma unroll
  for (int i = 0; i < kMostPairs; i++)
    for (int j = 0; j < 2; j++) {
      int pair = 32 * i + lane;
      numbers[i][j] = pair < pairs ? load_number(qkv, dtype, from + 2 * pair + j) : 0;
      squares += numbers[i][j] * numbers[i][j];
    }
  bool is_value = head >= q_heads + kv_heads;
  float factor = 1;
  if (norm_weights && !is_value) factor = rsqrtf(sum_warp(squares) / head_dim + (float)eps);
  u64 to = ((u64)row * q_heads + head) * head_dim;  // in q
  u8* cache = 0;
  if (head >= q_heads) {
    u64 slot = (head - q_heads - is_value * kv_heads) * step[1] + slots[row];
    cache = (u8*)step[3 + 2 * layer + is_value] + slot * kv_row_bytes(head_dim, kv_dtype);
  }
#pragma unroll
  for (int i = 0; i < kMostPairs; i++) {
    int pair = 32 * i + lane;
    if (32 * i >= pairs) break;  // for the whole warp, whose lanes share scales in 8 bits
    bool is_in = pair < pairs;
    float a = numbers[i][0] * factor, b = numbers[i][1] * factor;
    if (norm_weights && !is_value && is_in) {
      a *= norm_weights[head * head_dim + 2 * pair];
      b *= norm_weights[head * head_dim + 2 * pair + 1];
    }
    if (rotations && !is_value && is_in) {
      float2 turn = rotations[(u64)positions[row] * pairs + pair];
      float rotated = a * turn.x - b * turn.y;
      b = a * turn.y + b * turn.x;
      a = rotated;
    }
    if (cache && kv_dtype == KV_Q8_0) {
      kv_store_pair(cache, head_dim, pair, a, b);
    } else if (cache && is_in) {
      store_number(cache, kv_dtype, 2 * pair, a);
      store_number(cache, kv_dtype, 2 * pair + 1, b);
    } else if (is_in) {
      q[to + 2 * pair] = a * (float)scale;
      q[to + 2 * pair + 1] = b * (float)scale;
    }
  }
}
