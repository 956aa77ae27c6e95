// Runs CUDA kernels on the CPU: a fiber for each thread, in random order between the points where
// the threads of a warp or block synchronise. device.cuh includes this file with HOST_SHIM.
//
// A missing __syncthreads gives wrong numbers for most orders; threads that synchronise at different
// places, or part of a warp alone, end the process with a message.
#pragma once
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct float2 { float x, y; };
struct Dim3 { unsigned x = 1, y = 1, z = 1; };

#define HAS_TENSOR_CORES 1
#define __device__
#define __global__ __attribute__((visibility("default")))
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // blocks run one after the other

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }

namespace shim {

enum State { READY, AT_WARP, AT_BLOCK, DONE };

struct Fiber {
  ucontext_t context;  // for its first start; afterwards setjmp, which makes no system call
  jmp_buf place;
  bool is_started;
  State state;
  unsigned thread;
};

inline ucontext_t scheduler;
inline jmp_buf scheduler_place;
inline std::vector<Fiber> fibers;
inline Fiber* current;
inline Dim3 thread_index, block_index, block_size, grid_size;
inline u32 exchanged[1024][8];  // what lanes of a warp give each other
inline std::mt19937 order_of_threads;
inline void (*kernel)();
inline const u64* integers;
inline const double* doubles;

inline void fail(const char* message) {
  fprintf(stderr, "host shim: %s\n", message);
  exit(3);
}

inline void wait(State state) {
  Fiber* self = current;
  self->state = state;
  if (!_setjmp(self->place)) _longjmp(scheduler_place, 1);
  thread_index.x = self->thread;
}

inline void resume(Fiber* fiber) {
  current = fiber;
  thread_index.x = fiber->thread;
  if (_setjmp(scheduler_place)) return;
  if (fiber->is_started) _longjmp(fiber->place, 1);
  fiber->is_started = true;
  setcontext(&fiber->context);
}

// Integers and pointers fill the registers and stack slots of one class, doubles those of another:
// with enough of both, every kernel finds its own arguments, whatever their order.
inline void call_kernel() {
  typedef void (*Any)(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64,
                      u64, u64, u64, u64, u64, u64, u64, u64, double, double, double, double);
  const u64* i = integers;
  ((Any)kernel)(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12],
                i[13], i[14], i[15], i[16], i[17], i[18], i[19], i[20], i[21], i[22], i[23],
                doubles[0], doubles[1], doubles[2], doubles[3]);
  current->state = DONE;
  _longjmp(scheduler_place, 1);
}

// Lets warps go on of which all lanes wait, or the block if all its threads do.
inline bool release() {
  unsigned threads = fibers.size(), live = 0, at_block = 0;
  bool released = false;
  for (unsigned first = 0; first < threads; first += 32) {
    unsigned alive = 0, waiting = 0, end = std::min(first + 32, threads);
    for (unsigned i = first; i < end; i++) {
      alive += fibers[i].state != DONE;
      waiting += fibers[i].state == AT_WARP;
      at_block += fibers[i].state == AT_BLOCK;
    }
    live += alive;
    if (!waiting || waiting != alive) continue;
    if (waiting != 32) fail("part of a warp synchronises");
    for (unsigned i = first; i < end; i++) fibers[i].state = READY;
    released = true;
  }
  if (released || !live) return released;
  if (at_block != live) fail("threads synchronise at different places");
  for (auto& fiber : fibers)
    if (fiber.state == AT_BLOCK) fiber.state = READY;
  return true;
}

inline void run_block(unsigned threads) {
  const size_t stack = 128 << 10;
  static char* stacks = (char*)mmap(0, 1024 * stack, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  fibers.resize(threads);
  for (unsigned i = 0; i < threads; i++) {
    Fiber& fiber = fibers[i];
    fiber.thread = i;
    fiber.state = READY;
    fiber.is_started = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks + i * stack;
    fiber.context.uc_stack.ss_size = stack;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, call_kernel, 0);
  }
  std::vector<unsigned> ready;
  do {
    for (;;) {
      ready.clear();
      for (unsigned i = 0; i < threads; i++)
        if (fibers[i].state == READY) ready.push_back(i);
      if (ready.empty()) break;
      std::shuffle(ready.begin(), ready.end(), order_of_threads);
      for (unsigned i : ready) resume(&fibers[i]);
    }
  } while (release());
}

}  // namespace shim

#define threadIdx shim::thread_index
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size

inline float rsqrtf(float x) { return 1 / sqrtf(x); }

inline void __syncthreads() { shim::wait(shim::AT_BLOCK); }

inline float half_to_float(u16 bits) {
  _Float16 half;
  memcpy(&half, &bits, 2);
  return (float)half;
}

inline u16 float_to_half(float number) {
  _Float16 half = (_Float16)number;
  u16 bits;
  memcpy(&bits, &half, 2);
  return bits;
}

inline u32 fma_halves(u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (int i = 0; i < 32; i += 16) {  // exact in double, then rounded once
    double sum = (double)half_to_float(a >> i) * half_to_float(b >> i) + half_to_float(c >> i);
    _Float16 half = (_Float16)sum;
    u16 bits;
    memcpy(&bits, &half, 2);
    result |= (u32)bits << i;
  }
  return result;
}

inline int dot_bytes(u32 a, u32 b, int c) {
  for (int i = 0; i < 32; i += 8) c += (int)(int8_t)(a >> i) * (int)(int8_t)(b >> i);
  return c;
}

inline u32 permute_bytes(u32 low, u32 high, u32 selector) {
  u64 bytes = (u64)high << 32 | low;
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    u32 nibble = selector >> 4 * i & 15, byte = (u32)(bytes >> 8 * (nibble & 7)) & 255;
    if (nibble & 8) byte = byte & 128 ? 255 : 0;  // the sign instead of the byte
    result |= byte << 8 * i;
  }
  return result;
}

inline float shuffle_from(float number, int lane) {
  unsigned thread = shim::current->thread, partner = (thread & ~31u) | (lane & 31);
  memcpy(&shim::exchanged[thread][0], &number, 4);
  shim::wait(shim::AT_WARP);
  float other;
  memcpy(&other, &shim::exchanged[partner][0], 4);
  shim::wait(shim::AT_WARP);
  return other;
}

inline float shuffle_xor(float number, int lanes) {
  return shuffle_from(number, (shim::current->thread ^ lanes) & 31);
}

// m16n8k16 with fragments as PTX lays them out.
inline void mma_16x8x16(float* d, const u32* a, u32 b0, u32 b1) {
  unsigned thread = shim::current->thread, warp = thread & ~31u;
  unsigned g = (thread & 31) >> 2, t = thread & 3;
  memcpy(shim::exchanged[thread], a, 16);
  shim::exchanged[thread][4] = b0;
  shim::exchanged[thread][5] = b1;
  shim::wait(shim::AT_WARP);
  for (unsigned i = 0; i < 4; i++) {
    unsigned row = g + 8 * (i >> 1), column = 2 * t + (i & 1);
    float sum = d[i];
    for (unsigned k = 0; k < 16; k++) {
      unsigned lane = (k & 7) >> 1, high = k >> 3, shift = 16 * (k & 1);
      u32 one = shim::exchanged[warp + (row & 7) * 4 + lane][(row >> 3) + 2 * high];
      u32 two = shim::exchanged[warp + column * 4 + lane][4 + high];
      sum += half_to_float(one >> shift) * half_to_float(two >> shift);
    }
    d[i] = sum;
  }
  shim::wait(shim::AT_WARP);
}
