// Owners of what CUDA's libraries hand out: destroyed with the owner, movable, never copied.
#pragma once

#include <memory>
#include <type_traits>

#include "core/backend/cuda/runtime/check.h"

namespace trainctl::cuda {

// Calls a library's destroy function; its status is of no use to anybody.
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

// The result of a library's create function: make<OwnedStream>(cudaStreamCreateWithFlags, "cudaStreamCreate", flags).
template <class Owner, class Create, class... Arguments>
Owner make(Create create, std::string_view call, Arguments... arguments) {
  typename Owner::pointer handle = nullptr;
  check(create(&handle, arguments...), call);
  return Owner(handle);
}

}  // namespace trainctl::cuda
