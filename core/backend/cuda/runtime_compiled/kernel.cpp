// Loads and launches kernels that are compiled at run time, and keeps them until the process ends.
#include "core/backend/cuda/runtime_compiled/kernel.h"

#include <map>
#include <mutex>
#include <utility>

#include "core/backend/cuda/runtime/check.h"
#include "core/backend/cuda/runtime_compiled/nvrtc.h"

namespace trainctl::cuda {
namespace {

cudaKernel_t load(const std::string& code, const char* name) {
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), "cudaLibraryLoadData");
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, name), "cudaLibraryGetKernel");
  // Otherwise CUDA loads the kernel at its first launch, which is not allowed during a capture.
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel)), "cudaFuncGetAttributes");
  return kernel;
}

}  // namespace

void CompiledKernel::launch(unsigned blocks, unsigned threads, cudaStream_t stream,
                            const std::vector<void*>& addresses) const {
  void* arguments[] = {const_cast<void**>(addresses.data())};
  check(cudaLaunchKernel(static_cast<const void*>(kernel_), dim3(blocks), dim3(threads), arguments, 0, stream),
        "cudaLaunchKernel");
}

CompiledKernel compiled_kernel(const std::string& source, const char* name, int capability) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, cudaKernel_t> kernels;
  const std::scoped_lock lock(mutex);
  cudaKernel_t& kernel = kernels[{capability, source}];
  if (kernel == nullptr) kernel = load(compile_source(source, capability), name);
  return CompiledKernel(kernel);
}

}  // namespace trainctl::cuda
