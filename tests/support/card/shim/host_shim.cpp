// The entry point of a library of kernels: runs all blocks of one launch.
#include "host_shim.h"

extern "C" __attribute__((visibility("default"))) void shim_launch(
    void (*kernel)(), const unsigned* grid, unsigned threads, const u64* integers,
    const double* doubles, unsigned seed) {
  shim::kernel = kernel;
  shim::integers = integers;
  shim::doubles = doubles;
  shim::order_of_threads.seed(seed);
  shim::grid_size = {grid[0], grid[1], grid[2]};
  shim::block_size.x = threads;
  for (unsigned z = 0; z < grid[2]; z++)
    for (unsigned y = 0; y < grid[1]; y++)
      for (unsigned x = 0; x < grid[0]; x++) {
        shim::block_index = {x, y, z};
        shim::run_block(threads);
      }
}
