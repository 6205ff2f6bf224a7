// NCCL's library, loaded at run time, so that trainctl also works without it.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <string>

namespace trainctl {

// The functions that are used. NCCL 2.14 has all required functions.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  // Optional, since NCCL 2.19; null in older versions.
  ncclResult_t (*mem_alloc)(void** memory, std::size_t bytes) = nullptr;
  ncclResult_t (*mem_free)(void* memory) = nullptr;
  ncclResult_t (*register_memory)(ncclComm_t ranks, void* memory, std::size_t bytes, void** handle) = nullptr;
  ncclResult_t (*deregister_memory)(ncclComm_t ranks, void* handle) = nullptr;
};

// Looks for libnccl.so.2 in the folders of open_cuda_library(). Returns null if it cannot be loaded, and sets `why` to
// the reason.
std::shared_ptr<const NcclLibrary> load_nccl(std::string& why);

}  // namespace trainctl
