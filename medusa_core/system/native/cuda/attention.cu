// Attention of the rows of a token tree over cached keys and values, split over the keys.
//
// A row is a query head of a tree node; `rows` = nodes · query heads per key head rows share the
// keys of one KV head. Each split of the keys gives every row an unnormalised sum and its softmax
// statistics; merge_splits joins them. The number of splits depends on the number of keys alone.
//
// attend_mma_*: tensor cores (sm_75 and later), head_dim 64, 96, 128 or 256. A warp has 16 rows.
// attend_mma_q8_*: the same for keys and values in 8 bits.
// attend_dot: any card, head_dim up to 256, a multiple of 8. A warp has four rows.
//
// q: [nodes, q heads, head_dim], scaled. keys, values: [kv heads, keys] rows of kv.cuh, with
// `head_stride` numbers, or bytes of 8 bits, from head to head. mask: additive [nodes, keys] with
// `mask_stride` numbers a row, or null. sums: [kv heads, splits, rows, head_dim];
// statistics: [kv heads, splits, rows], the maximum (in powers of two) and the sum of weights.
//
// Launches of a CUDA graph, whose arguments never change, read the rest from device memory: `step`,
// else null, has the number of committed keys, slots of a head, tree nodes, and for every layer the
// addresses of its keys and values. A node sees the committed keys within its window (0 for all),
// and the nodes whose bits are set in `visible`: [nodes, words of 32 bits]. The first split begins
// a block of keys that depends on the number of committed keys alone, so that a row's sums are the
// same whatever other nodes the tree has.
//
// Source: FlashDecoding (Dao et al. 2023).
#include "kv.cuh"

static const float kLog2E = 1.44269504f, kMasked = -1e30f;

__device__ __forceinline__ float finish_score(float score, float softcap, float bias) {
  if (softcap != 0) score = softcap * tanhf(score / softcap);
  float masked = score * kLog2E + bias;
  return masked > kMasked ? masked : kMasked;
}

// The keys of one launch, and what its rows see of them.
struct Keys {
  const u8 *keys, *values;
  u64 row_bytes, head_bytes;
  int num_keys, num_committed, window, mask_dtype, mask_stride, num_words;
  const void* mask;
  const long long *visible, *positions;
};

__device__ __forceinline__ Keys keys_of(
    const void* keys, const void* values, int kv_dtype, int head_stride, int num_keys,
    const void* mask, int mask_dtype, int mask_stride, const long long* step,
    const long long* visible, const long long* positions, int nodes, int window, int layer,
    int head_dim) {
  u64 row_bytes = kv_row_bytes(head_dim, kv_dtype);
  u64 head_bytes = (u64)head_stride * (kv_dtype == KV_Q8_0 ? 1 : 2);
  Keys of = {(const u8*)keys, (const u8*)values, row_bytes, head_bytes, num_keys, num_keys, window,
             mask_dtype, mask_stride, (nodes + 31) / 32, mask, visible, positions};
  if (!step) return of;
  of.num_committed = (int)step[0];
  of.head_bytes = step[1] * row_bytes;
  of.num_keys = of.num_committed + (int)step[2];
  of.keys = (const u8*)step[3 + 2 * layer];
  of.values = (const u8*)step[4 + 2 * layer];
  return of;
}

// Tiles of one split, of `tile` keys each.
__device__ __forceinline__ int tiles_per_split(int num_keys, int splits, int tile, bool is_step) {
  int per_split = ((num_keys + tile - 1) / tile + splits - 1) / splits;
  return is_step ? max(per_split, 256 / tile) : per_split;
}

__device__ __forceinline__ int end_of_split(const Keys& of, int split, int splits, int tile,
                                            int per_split) {
  int tiles = (of.num_keys + tile - 1) / tile;
  return split == splits - 1 ? tiles : min((split + 1) * per_split, tiles);
}

// The additive mask of one score; keys past the last are masked, too.
__device__ __forceinline__ float mask_of(const Keys& of, int node, int key) {
  if (key >= of.num_keys) return kMasked;
  if (of.visible) {
    int after = key - of.num_committed;
    if (after >= 0)
      return of.visible[node * of.num_words + (after >> 5)] >> (after & 31) & 1 ? 0 : kMasked;
    return of.window && key <= of.positions[node] - of.window ? kMasked : 0;
  }
  if (!of.mask) return 0;
  float bias = load_number(of.mask, of.mask_dtype, (u64)node * of.mask_stride + key);
  return bias > kMasked ? bias * kLog2E : kMasked;
}

#if HAS_TENSOR_CORES
// Two pairs of q as halves.
__device__ __forceinline__ u32 q_pair(const void* q, int dtype, u64 at) {
  return pack_halves(load_number(q, dtype, at), load_number(q, dtype, at + 1));
}

// Any order of the head's dimensions gives the same products: lane t of four reads dimensions
// 8t … 8t + 7 of every 32 of a key, and lane g of eight reads dimensions g · D/8 … of a value.
template <int D, bool kQ8>
__device__ __forceinline__ void attend_mma(
    const void* q, int q_dtype, const void* keys, const void* values, int kv_dtype,
    int head_stride, const void* mask, int mask_dtype, int mask_stride, float* sums,
    float2* statistics, int nodes, int q_heads, int kv_heads, int num_keys, int splits,
    const long long* step, const long long* visible, const long long* positions, int window,
    int layer, double softcap) {
  int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int group = q_heads / kv_heads, rows = nodes * group, blocks_of_rows = (rows + 63) / 64;
  int of_rows = blockIdx.x % blocks_of_rows, rest = blockIdx.x / blocks_of_rows;
  int split = rest % splits, head = rest / splits;
  int first = of_rows * 64 + (threadIdx.x >> 5) * 16;
  if (first >= rows) return;
  int row[2] = {min(first + g, rows - 1), min(first + g + 8, rows - 1)}, node[2];
  u64 q_at[2];
  for (int i = 0; i < 2; i++) {
    node[i] = row[i] % nodes;
    q_at[i] = ((u64)node[i] * q_heads + head * group + row[i] / nodes) * D + 8 * t;
  }
  if (kQ8) kv_dtype = KV_Q8_0;
  Keys of = keys_of(keys, values, kv_dtype, head_stride, num_keys, mask, mask_dtype, mask_stride,
                    step, visible, positions, nodes, window, layer, D);
  num_keys = of.num_keys;
  int per_split = tiles_per_split(of.num_committed, splits, 16, step != 0);
  int end = end_of_split(of, split, splits, 16, per_split);
  if (step && split * per_split >= end) return;  // keys for fewer splits: merge_splits knows
  const u8* own_keys = of.keys + head * of.head_bytes;
  const u8* own_values = of.values + head * of.head_bytes;
  u32 q_halves[D <= 128 ? D / 8 : 1][4];
  if (D <= 128) {
#pragma unroll
    for (int c = 0; c < D / 32; c++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
          q_halves[4 * c + i][j] = q_pair(q, q_dtype, q_at[j] + 32 * c + 2 * i);
  }
  float acc[D / 8][4], top[2] = {kMasked, kMasked}, total[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < D / 8; i++)
    for (int j = 0; j < 4; j++) acc[i][j] = 0;
  for (int tile = split * per_split; tile < end; tile++) {
    float bias[2][4], highest = kMasked;
#pragma unroll
    for (int half = 0; half < 2; half++)
      for (int i = 0; i < 4; i++) {
        int key = 16 * tile + 8 * half + 2 * t + (i & 1);
        bias[half][i] = mask_of(of, node[i >> 1], key);
        highest = fmaxf(highest, bias[half][i]);
      }
    if (max_warp(highest) <= kMasked) continue;  // keys that no row attends to are not read
    float scores[2][4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      for (int i = 0; i < 4; i++) scores[half][i] = 0;
      int key = min(16 * tile + 8 * half + g, num_keys - 1);
      const u8* of_key = own_keys + key * of.row_bytes + (kQ8 ? 8 : 16) * t;
      const u8* of_columns[2];  // whose products this lane has
      for (int i = 0; kQ8 && i < 2; i++)
        of_columns[i] = own_keys + min(16 * tile + 8 * half + 2 * t + i, num_keys - 1) * of.row_bytes;
#pragma unroll
      for (int c = 0; c < D / 32; c++) {
        u32 words[4];
        float products[4] = {0, 0, 0, 0};  // of a block, without its scale
        if (kQ8) {
#pragma unroll
          for (int i = 0; i < 4; i++)
            words[i] = halves_of_bytes(*(const u32*)(of_key + 32 * c + 4 * (i >> 1)), i & 1);
        } else {
          uint4 pairs = *(const uint4*)(of_key + 64 * c);
          words[0] = pair_as_halves(pairs.x, kv_dtype);
          words[1] = pair_as_halves(pairs.y, kv_dtype);
          words[2] = pair_as_halves(pairs.z, kv_dtype);
          words[3] = pair_as_halves(pairs.w, kv_dtype);
        }
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          u32 a[4];
          for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++)
              a[k + 2 * j] = D <= 128 ? q_halves[4 * c + i + j][k]
                                      : q_pair(q, q_dtype, q_at[k] + 32 * c + 2 * (i + j));
          mma_16x8x16(kQ8 ? products : scores[half], a, words[i], words[i + 1]);
        }
#pragma unroll
        for (int i = 0; kQ8 && i < 4; i++)
          scores[half][i] += products[i] * half_to_float(kv_scale(of_columns[i & 1], D, 32 * c));
      }
    }
    float best[2] = {top[0], top[1]}, factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
      for (int i = 0; i < 4; i++) {
        scores[half][i] = finish_score(scores[half][i], (float)softcap, bias[half][i]);
        best[i >> 1] = fmaxf(best[i >> 1], scores[half][i]);
      }
    for (int i = 0; i < 2; i++) {
      for (int lanes = 1; lanes < 4; lanes <<= 1)
        best[i] = fmaxf(best[i], shuffle_xor(best[i], lanes));
      factor[i] = exp2f(top[i] - best[i]);
      top[i] = best[i];
      total[i] *= factor[i];
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
      for (int i = 0; i < 4; i++) {
        float score = scores[half][i];
        scores[half][i] = score > kMasked ? exp2f(score - top[i >> 1]) : 0;
        total[i >> 1] += scores[half][i];
      }
    u32 weights[4] = {pack_halves(scores[0][0], scores[0][1]), pack_halves(scores[0][2], scores[0][3]),
                      pack_halves(scores[1][0], scores[1][1]), pack_halves(scores[1][2], scores[1][3])};
    const u8* of_values[4];
    u32 scales[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int key = min(16 * tile + 2 * t + (i & 1) + 8 * (i >> 1), num_keys - 1);
      of_values[i] = own_values + key * of.row_bytes;
    }
#pragma unroll
    for (int j = 0; j < D / 16; j++) {  // two dimensions, of four keys
      u32 v[4];
      int dim = g * (D / 8) + 2 * j;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (!kQ8) {
          v[i] = pair_as_halves(*(const u32*)(of_values[i] + 2 * dim), kv_dtype);
          continue;
        }
        // Of other sizes the dimensions of a lane are in one block.
        if (j == 0 || D == 96) scales[i] = kv_scale(of_values[i], D, dim) * 0x10001u;
        u32 codes = *(const u16*)(of_values[i] + dim);
        v[i] = fma_halves(halves_of_bytes(codes, false), scales[i], 0x80008000u);  // − 0
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float* into = acc[2 * j + i];
        for (int k = 0; k < 4; k++) into[k] *= factor[k >> 1];
        u32 selector = i ? 0x7632u : 0x5410u;
        mma_16x8x16(into, weights, permute_bytes(v[0], v[1], selector),
                    permute_bytes(v[2], v[3], selector));
      }
    }
  }
  u64 at = ((u64)head * splits + split) * rows;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    for (int lanes = 1; lanes < 4; lanes <<= 1) total[i] += shuffle_xor(total[i], lanes);
    if (first + g + 8 * i >= rows) continue;
    float* of_row = sums + (at + row[i]) * D + 2 * t * (D / 8);
    for (int j = 0; j < D / 8; j++) {
      of_row[j] = acc[j][2 * i];
      of_row[D / 8 + j] = acc[j][2 * i + 1];
    }
    if (t == 0) {
      statistics[at + row[i]].x = top[i];
      statistics[at + row[i]].y = total[i];
    }
  }
}

#define ATTEND_MMA(name, D, kQ8)                                                               \
  extern "C" __global__ void __launch_bounds__(128, 1) name(                                   \
      const void* q, int q_dtype, const void* keys, const void* values, int kv_dtype,          \
      int head_stride, const void* mask, int mask_dtype, int mask_stride, float* sums,         \
      float2* statistics, int nodes, int q_heads, int kv_heads, int num_keys, int splits,      \
      const long long* step, const long long* visible, const long long* positions, int window, \
      int layer, double softcap) {                                                             \
    attend_mma<D, kQ8>(q, q_dtype, keys, values, kv_dtype, head_stride, mask, mask_dtype,      \
                       mask_stride, sums, statistics, nodes, q_heads, kv_heads, num_keys,      \
                       splits, step, visible, positions, window, layer, softcap);              \
  }
ATTEND_MMA(attend_mma_64, 64, false)
ATTEND_MMA(attend_mma_96, 96, false)
ATTEND_MMA(attend_mma_128, 128, false)
ATTEND_MMA(attend_mma_256, 256, false)
ATTEND_MMA(attend_mma_q8_64, 64, true)
ATTEND_MMA(attend_mma_q8_96, 96, true)
ATTEND_MMA(attend_mma_q8_128, 128, true)
ATTEND_MMA(attend_mma_q8_256, 256, true)
#endif  // HAS_TENSOR_CORES

// Four rows a warp: each lane has a key for the scores, and dimensions lane, lane + 32, … for the
// sums. Four warps a block, of consecutive rows.
extern "C" __global__ void __launch_bounds__(128, 1) attend_dot(
    const void* q, int q_dtype, const void* keys, const void* values, int kv_dtype,
    int head_stride, const void* mask, int mask_dtype, int mask_stride, float* sums,
    float2* statistics, int nodes, int q_heads, int kv_heads, int num_keys, int splits,
    const long long* step, const long long* visible, const long long* positions, int window,
    int layer, double softcap, int head_dim) {
  const int kRows = 4, kMostDims = 8;
  __shared__ float q_rows[16][256];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int group = q_heads / kv_heads, rows = nodes * group, blocks_of_rows = (rows + 15) / 16;
  int of_rows = blockIdx.x % blocks_of_rows, rest = blockIdx.x / blocks_of_rows;
  int split = rest % splits, head = rest / splits, first = of_rows * 16;
  for (int i = threadIdx.x; i < 16 * head_dim; i += blockDim.x) {
    int row = min(first + i / head_dim, rows - 1), dim = i % head_dim;
    u64 at = ((u64)(row % nodes) * q_heads + head * group + row / nodes) * head_dim + dim;
    q_rows[i / head_dim][dim] = load_number(q, q_dtype, at);
  }
  __syncthreads();
  first += kRows * warp;
  if (first >= rows) return;
  Keys of = keys_of(keys, values, kv_dtype, head_stride, num_keys, mask, mask_dtype, mask_stride,
                    step, visible, positions, nodes, window, layer, head_dim);
  num_keys = of.num_keys;
  int per_split = tiles_per_split(of.num_committed, splits, 32, step != 0);
  int end = end_of_split(of, split, splits, 32, per_split);
  if (step && split * per_split >= end) return;  // keys for fewer splits: merge_splits knows
  const u8* own_keys = of.keys + head * of.head_bytes;
  const u8* own_values = of.values + head * of.head_bytes;
  float acc[kRows][kMostDims], top[kRows], total[kRows];
#pragma unroll
  for (int r = 0; r < kRows; r++) {
    top[r] = kMasked;
    total[r] = 0;
    for (int i = 0; i < kMostDims; i++) acc[r][i] = 0;
  }
  for (int tile = split * per_split; tile < end; tile++) {
    int key = 32 * tile + lane;
    float bias[kRows], scores[kRows], highest = kMasked;
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      int node = min(first + r, rows - 1) % nodes;
      bias[r] = mask_of(of, node, key);
      highest = fmaxf(highest, bias[r]);
      scores[r] = 0;
    }
    if (max_warp(highest) <= kMasked) continue;
    const u8* of_key = own_keys + min(key, num_keys - 1) * of.row_bytes;
    float scale = 0;
    for (int dim = 0; dim < head_dim; dim += 2) {
      float low, high;
      if (kv_dtype == KV_Q8_0) {
        if (dim % 32 == 0) scale = half_to_float(kv_scale(of_key, head_dim, dim));
        u16 codes = *(const u16*)(of_key + dim);
        low = (float)(signed char)codes * scale;
        high = (float)(signed char)(codes >> 8) * scale;
      } else {
        u32 pair = pair_as_halves(*(const u32*)(of_key + 2 * dim), kv_dtype);
        low = half_to_float((u16)pair);
        high = half_to_float((u16)(pair >> 16));
      }
#pragma unroll
      for (int r = 0; r < kRows; r++)
        scores[r] += q_rows[kRows * warp + r][dim] * low + q_rows[kRows * warp + r][dim + 1] * high;
    }
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      scores[r] = finish_score(scores[r], (float)softcap, bias[r]);
      float best = fmaxf(top[r], max_warp(scores[r])), factor = exp2f(top[r] - best);
      scores[r] = scores[r] > kMasked ? exp2f(scores[r] - best) : 0;
      total[r] = total[r] * factor + sum_warp(scores[r]);
      top[r] = best;
      for (int i = 0; i < kMostDims; i++) acc[r][i] *= factor;
    }
    int count = min(32, num_keys - 32 * tile);
    for (int k = 0; k < count; k++) {
      const u8* of_value = own_values + (32 * tile + k) * of.row_bytes;
      float weights[kRows];
#pragma unroll
      for (int r = 0; r < kRows; r++) weights[r] = shuffle_from(scores[r], k);
#pragma unroll
      for (int i = 0; i < kMostDims; i++) {
        int dim = 32 * i + lane;
        if (dim >= head_dim) break;
        float value = kv_number(of_value, kv_dtype, head_dim, dim);
        for (int r = 0; r < kRows; r++) acc[r][i] += weights[r] * value;
      }
    }
  }
  u64 at = ((u64)head * splits + split) * rows;
#pragma unroll
  for (int r = 0; r < kRows; r++) {
    if (first + r >= rows) break;
    for (int i = 0; i < kMostDims; i++)
      if (32 * i + lane < head_dim) sums[(at + first + r) * head_dim + 32 * i + lane] = acc[r][i];
    if (lane == 0) {
      statistics[at + first + r].x = top[r];
      statistics[at + first + r].y = total[r];
    }
  }
}

// Joins the splits of each row: a block per row of every KV head, a thread per dimension.
// sinks: a score for each query head that belongs to no key, or null. out: as q, or PREPARED and
// divided by `out_scale`, or QUANTIZED with `code_scales` if head_dim is a multiple of 32. tile: keys
// of a tile of the kernel that attended.
extern "C" __global__ void __launch_bounds__(256) merge_splits(
    const float* sums, const float2* statistics, const void* sinks, int sinks_dtype, void* out,
    int dtype, float* code_scales, int nodes, int q_heads, int kv_heads, int splits, int head_dim,
    const long long* step, int tile, double out_scale) {
  int group = q_heads / kv_heads, rows = nodes * group, used = splits;
  if (step) {
    int tiles = (int)(step[0] + step[2] + tile - 1) / tile;
    int per_split = tiles_per_split((int)step[0], splits, tile, true);
    used = min(splits, (tiles + per_split - 1) / per_split);
  }
  int row = blockIdx.x % rows, head = blockIdx.x / rows, q_head = head * group + row / nodes;
  float top = kMasked, total = 0, sum = 0;
  float sink = sinks ? load_number(sinks, sinks_dtype, q_head) * kLog2E : kMasked;
  for (int split = 0; split < used; split++)
    top = fmaxf(top, statistics[((u64)head * splits + split) * rows + row].x);
  top = fmaxf(top, sink);
  for (int split = 0; split < used; split++) {
    u64 at = ((u64)head * splits + split) * rows + row;
    float factor = exp2f(statistics[at].x - top);
    total += factor * statistics[at].y;
    if (threadIdx.x < head_dim) sum += factor * sums[at * head_dim + threadIdx.x];
  }
  if (sinks) total += exp2f(sink - top);
  u64 to = ((u64)(row % nodes) * q_heads + q_head) * head_dim + threadIdx.x;
  if (threadIdx.x >= head_dim) return;
  float mixed = total > 0 ? sum / total : 0;  // rows of padding may see nothing
  if (dtype == PREPARED)
    ((u16*)out)[prepared_place(to)] = float_to_half(mixed / (float)out_scale);
  else if (dtype == QUANTIZED)
    store_quantized(out, code_scales, to, mixed);
  else
    store_number(out, dtype, to, mixed);
}
