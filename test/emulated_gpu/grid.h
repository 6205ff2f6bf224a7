// Runs grids of threads on the CPU: blocks one after the other, threads of a block as fibers of the calling thread.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace emulated {

// Queues a kernel; each of its threads runs `thread`. cudaPeekAtLastError() returns the error of a launch that CUDA
// refuses. A kernel is loaded by its first launch, which must not be captured, or by cudaFuncGetAttributes(); if
// `kernel` is null, nothing needs to be loaded.
void launch(const void* kernel, dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread);

// Runs all threads now: blocks in a scrambled order, threads in ascending or descending order. A hang is a fault
// (see fault() in runtime.h).
void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

}  // namespace emulated
