// Implements the part of the runtime that loads and launches kernels compiled at run time (see host_compiler.cpp).
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstddef>
#include <string>

#include "test/emulated_gpu/grid.h"
#include "test/emulated_gpu/runtime.h"

struct CUkern_st {
  unsigned long argument_bytes = 0;
  void (*run_thread)(const void* argument, const unsigned (*indices)[3]) = nullptr;
};

using emulated::call;

extern "C" {

// The code is the path of a library, and a cudaLibrary_t its handle.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return call([&] {
    if (const cudaError_t forbidden = emulated::forbid_while_capturing()) return forbidden;
    *library = static_cast<cudaLibrary_t>(dlopen(static_cast<const char*>(code), RTLD_NOW | RTLD_LOCAL));
    return *library == nullptr ? cudaErrorInvalidKernelImage : cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return call([&] {
    if (dlsym(library, name) == nullptr) return cudaErrorSymbolNotFound;
    const auto bytes = reinterpret_cast<unsigned long (*)()>(dlsym(library, "argument_bytes"));
    *kernel = new CUkern_st{
        bytes(), reinterpret_cast<decltype(CUkern_st::run_thread)>(dlsym(library, "run_thread"))};  // never unloaded
    return cudaSuccess;
  });
}

// Launches only kernels of cudaLibraryGetKernel(), which have one argument.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t stream) {
  const auto* kernel = static_cast<const CUkern_st*>(function);
  const std::string argument(static_cast<const char*>(arguments[0]), kernel->argument_bytes);
  emulated::launch(function, grid, block, stream, [run = kernel->run_thread, argument] {
    const unsigned indices[4][3] = {{threadIdx.x, threadIdx.y, threadIdx.z},
                                    {blockIdx.x, blockIdx.y, blockIdx.z},
                                    {blockDim.x, blockDim.y, blockDim.z},
                                    {gridDim.x, gridDim.y, gridDim.z}};
    run(argument.data(), indices);
  });
  return cudaPeekAtLastError();
}

}  // extern "C"
