// Starts a kernel on the emulated GPU; replaces the header of this name that CUDA uses.
#pragma once

#include <cuda_runtime.h>

#include <tuple>

#include "core/backend/cuda/runtime/check.h"
#include "test/emulated_gpu/grid.h"

namespace trainctl::cuda {

// Queues kernel(arguments...) on the stream, over `blocks` blocks of `threads` threads. Throws like check().
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 blocks, int threads, cudaStream_t stream, Arguments... arguments) {
  const std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernel arguments are copied byte by byte");
  emulated::launch(reinterpret_cast<const void*>(kernel), blocks, dim3(static_cast<unsigned>(threads)), stream,
                   [kernel, values] { std::apply([kernel](auto... each) { kernel(each...); }, values); });
  check(cudaPeekAtLastError(), "kernel launch");
}

template <class... Parameters>
void load_kernel(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)), "cudaFuncGetAttributes");
}

}  // namespace trainctl::cuda
