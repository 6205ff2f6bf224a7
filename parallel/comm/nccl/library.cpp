// Loads libnccl.so.2 and looks up its functions.
#include "parallel/comm/nccl/library.h"

#include <dlfcn.h>

#include "core/backend/cuda_libraries.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr int oldest = 21400;  // 2.14, the first version with non-blocking communicators

}  // namespace

std::shared_ptr<const NcclLibrary> load_nccl(std::string& why) {
  void* file =
      dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);  // the loader also searches this module's RPATH
  if (file == nullptr) file = open_cuda_library("libnccl.so.2", why);
  if (file == nullptr) return nullptr;
  why.clear();  // it may hold the reason why the library is not in another folder
  const auto nccl = std::make_shared<NcclLibrary>();
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
    if (function == nullptr && why.empty()) why = format("libnccl.so.2 has no {}", name);
  };
  find(nccl->get_version, "ncclGetVersion");
  find(nccl->get_unique_id, "ncclGetUniqueId");
  find(nccl->init_rank, "ncclCommInitRankConfig");
  find(nccl->finalize, "ncclCommFinalize");
  find(nccl->destroy, "ncclCommDestroy");
  find(nccl->abort, "ncclCommAbort");
  find(nccl->get_async_error, "ncclCommGetAsyncError");
  find(nccl->error_string, "ncclGetErrorString");
  find(nccl->last_error, "ncclGetLastError");
  find(nccl->all_reduce, "ncclAllReduce");
  find(nccl->reduce_scatter, "ncclReduceScatter");
  find(nccl->all_gather, "ncclAllGather");
  find(nccl->broadcast, "ncclBroadcast");
  find(nccl->send, "ncclSend");
  find(nccl->receive, "ncclRecv");
  find(nccl->group_start, "ncclGroupStart");
  find(nccl->group_end, "ncclGroupEnd");
  if (!why.empty()) return nullptr;
  find(nccl->mem_alloc, "ncclMemAlloc");
  find(nccl->mem_free, "ncclMemFree");
  find(nccl->register_memory, "ncclCommRegister");
  find(nccl->deregister_memory, "ncclCommDeregister");
  why.clear();
  int version = 0;
  nccl->get_version(&version);
  if (version >= oldest) return nccl;
  why = format("NCCL {}.{} is older than 2.14", version / (version < 10000 ? 1000 : 10000),
               version / 100 % (version < 10000 ? 10 : 100));
  return nullptr;
}

}  // namespace trainctl
