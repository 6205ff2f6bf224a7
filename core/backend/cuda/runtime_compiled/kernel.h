// Kernels that are compiled from source while the program runs.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace trainctl::cuda {

// A kernel with one argument: addresses, by value.
class CompiledKernel {
 public:
  explicit CompiledKernel(cudaKernel_t kernel) : kernel_(kernel) {}

  // Queues the kernel with these addresses, also while the stream is captured. Throws the errors of check().
  void launch(unsigned blocks, unsigned threads, cudaStream_t stream, const std::vector<void*>& addresses) const;

 private:
  cudaKernel_t kernel_;
};

// Compiles and loads the kernel `name` of a source for GPUs of a compute capability (90 for 9.0), unless this process
// has done so before. Must not be called during a capture. Throws the errors of compile_source() and check().
CompiledKernel compiled_kernel(const std::string& source, const char* name, int capability);

}  // namespace trainctl::cuda
