// Owners of the handles of CUDA's libraries. They are movable, not copyable, and destroy the handle.
#pragma once

#include <memory>
#include <type_traits>

#include "core/backend/cuda/runtime/check.h"

namespace trainctl::cuda {

// Calls a library's destroy function and ignores its status.
template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};

// Handles of CUDA's libraries are pointers to opaque structs.
template <class HandleType, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<HandleType>, Destroy<destroy>>;

using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedGraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnedCudnn = Owned<cudnnHandle_t, cudnnDestroy>;
using OwnedBlas = Owned<cublasLtHandle_t, cublasLtDestroy>;
using OwnedDescriptor = Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;
using OwnedProduct = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using OwnedMatrix = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using OwnedPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// Calls a library's create function and owns the result: make<OwnedStream>(cudaStreamCreateWithFlags,
// "cudaStreamCreate", flags). Throws the errors of check().
template <class Owner, class Create, class... Arguments>
Owner make(Create create, std::string_view call, Arguments... arguments) {
  typename Owner::pointer handle = nullptr;
  check(create(&handle, arguments...), call);
  return Owner(handle);
}

}  // namespace trainctl::cuda
