// Launches the kernels of this project; no other file uses <<<>>>.
#pragma once

#include <cuda_runtime.h>

#include "core/backend/cuda/runtime/check.h"

namespace trainctl::cuda {

// Queues kernel(arguments...) on the stream, over `blocks` blocks of `threads` threads. Throws the errors of check().
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 blocks, int threads, cudaStream_t stream, Arguments... arguments) {
  kernel<<<blocks, static_cast<unsigned>(threads), 0, stream>>>(static_cast<Parameters>(arguments)...);
  check(cudaPeekAtLastError(), "kernel launch");
}

// Loads a kernel. Otherwise CUDA loads it at its first launch; loading is not allowed during a capture.
template <class... Parameters>
void load_kernel(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)), "cudaFuncGetAttributes");
}

}  // namespace trainctl::cuda
