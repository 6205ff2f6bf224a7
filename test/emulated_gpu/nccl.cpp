// Emulates the part of NCCL that trainctl uses, between processes on one machine.
//
// A collective moves every rank's data to every other rank, and each reduces the data that it needs in the order of the
// ranks. Calls on communicators that do not block stay in progress, and are queued on their stream only when
// ncclCommGetAsyncError() is called. Ranks whose calls do not match, or of which only some capture a call, get an error
// (NCCL itself would hang). nccl_order.h orders the calls of several communicators. TRAINCTL_EMULATED_NCCL_HANGS is the
// number of a rank that never takes part in a collective of 16 MiB or more.
#include <nccl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "test/emulated_gpu/nccl_link.h"
#include "test/emulated_gpu/nccl_log.h"
#include "test/emulated_gpu/nccl_numbers.h"
#include "test/emulated_gpu/nccl_order.h"
#include "test/emulated_gpu/runtime.h"

using namespace emulated;

namespace {

// Bytes to or from a peer.
struct Transfer {
  bool sends;
  int peer;
  std::byte* data;
  std::size_t bytes, moved = 0;
};

// A call, ready to be queued.
struct Queued {
  cudaStream_t stream;
  std::function<void()> run;
};

}  // namespace

struct ncclComm {
  std::unique_ptr<Link> link;
  bool blocking = true;
  bool connected = false;
  bool finalized = false;
  std::atomic<ncclResult_t> error{ncclSuccess};
  std::vector<Queued> in_progress;
  std::map<std::byte*, std::size_t> registered;
  int device = 0;
  std::map<int, void*> buffers;  // device memory by the peer for whose messages it was allocated; -1: of collectives

  ~ncclComm() {
    for (const auto& [peer, memory] : buffers) cudaFree(memory);
  }

  bool has_registered(const void* data) const {
    const auto at = registered.upper_bound(static_cast<std::byte*>(const_cast<void*>(data)));
    return at != registered.begin() && data < std::prev(at)->first + std::prev(at)->second;
  }
};

namespace {

std::string& last_error() {
  static auto& text = *new std::string;
  return text;
}

ncclResult_t fail(ncclComm* communicator, ncclResult_t result, const std::string& why) {
  std::fprintf(stderr, "emulated NCCL: %s\n", why.c_str());
  last_error() = why;
  if (communicator != nullptr) communicator->error = result;
  return result;
}

// The open group of this thread, whose transfers run together.
struct Group {
  int depth = 0;
  ncclComm* communicator = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Transfer> transfers;
};
Group& group() {
  static std::mutex& mutex = *new std::mutex;
  static auto& groups = *new std::map<std::thread::id, Group>;
  const std::scoped_lock lock(mutex);
  return groups[std::this_thread::get_id()];
}

// Whether an environment variable names the link "FROM:TO".
bool is_named(const char* variable, int from, int to) {
  const char* link = std::getenv(variable);
  return link != nullptr && link == std::to_string(from) + ":" + std::to_string(to);
}

// Runs transfers in parallel until all are done. TRAINCTL_EMULATED_NCCL_LOSES names a link, "FROM:TO", on which nothing
// arrives, and TRAINCTL_EMULATED_NCCL_FLIPS one on which the last byte of long messages is wrong. Returns false if the
// communicator was aborted or the ranks disagree.
bool exchange(ncclComm* communicator, std::vector<Transfer> transfers, std::uint64_t signature) {
  Link& link = *communicator->link;
  const DeviceAccess access;
  for (bool all = false; !all;) {
    if (link.aborted()) return false;
    all = true;
    bool any = false;
    std::set<std::pair<int, bool>> busy;  // peers with an earlier transfer that is not done
    for (Transfer& t : transfers) {
      if (t.moved == t.bytes || !busy.emplace(t.peer, t.sends).second) continue;
      bool same = true;
      if (!t.sends && is_named("TRAINCTL_EMULATED_NCCL_LOSES", t.peer, link.rank())) continue;
      const std::size_t moved_bytes = t.sends ? link.send(t.peer, t.data, t.moved, t.bytes, signature)
                                              : link.receive(t.peer, t.data, t.moved, t.bytes, signature, same);
      if (!same) {
        fail(communicator, ncclInvalidUsage, "the ranks of a communicator make different calls");
        return false;
      }
      t.moved += moved_bytes;
      any = any || moved_bytes > 0;
    }
    for (const Transfer& t : transfers) all = all && t.moved == t.bytes;
    if (!any && !all) sched_yield();
  }
  for (const Transfer& t : transfers) {
    const bool is_long = t.bytes > 1 << 20;
    if (!t.sends && is_long && is_named("TRAINCTL_EMULATED_NCCL_FLIPS", t.peer, link.rank())) {
      t.data[t.bytes - 1] ^= std::byte{5};
    }
  }
  return true;
}

// Returns a number that all ranks must agree on, made of the call (its eighth letter identifies it), the type, and the
// operation or root.
std::uint64_t signature_of(const char* name, ncclDataType_t type, int more) {
  return static_cast<std::uint64_t>(name[7]) << 32 | static_cast<std::uint64_t>(type) << 16 |
         static_cast<std::uint64_t>(more + 1);
}

ncclResult_t queue_now(ncclComm* communicator, const Queued& queued) {
  std::function<void()> run = in_launch_order(communicator, queued.stream, queued.run);
  if (!run) return fail(communicator, ncclInvalidUsage, "calls of several communicators are queued without an order");
  const cudaError_t status = queue(queued.stream, {Operation::Kind::wait, std::move(run)});
  return status == cudaSuccess ? ncclSuccess : fail(communicator, ncclUnhandledCudaError, cudaGetErrorName(status));
}

// Queues a call now, or later if the communicator does not block.
ncclResult_t submit(ncclComm* communicator, cudaStream_t stream, std::function<void()> run) {
  if (!communicator->connected) return fail(communicator, ncclInvalidUsage, "the communicator is not connected yet");
  if (communicator->error != ncclSuccess) return communicator->error;
  if (communicator->finalized) return fail(communicator, ncclInvalidUsage, "the communicator is finalized");
  if (communicator->blocking) return queue_now(communicator, {stream, std::move(run)});
  if (!communicator->in_progress.empty()) {
    return fail(communicator, ncclInvalidUsage, "a call while another one is in progress");
  }
  communicator->in_progress.push_back({stream, std::move(run)});
  return ncclInProgress;
}

// Allocates device memory at the first collective of a communicator, and at the first message to or from each peer, as
// NCCL does: TRAINCTL_EMULATED_NCCL_BUFFERS bytes each.
bool has_buffers(ncclComm* communicator, int peer) {
  const char* bytes = std::getenv("TRAINCTL_EMULATED_NCCL_BUFFERS");
  if (bytes == nullptr || communicator->buffers.contains(peer)) return true;
  void* memory = nullptr;
  if (cudaMalloc(&memory, std::strtoull(bytes, nullptr, 10)) != cudaSuccess) return false;
  communicator->buffers[peer] = memory;
  return true;
}

bool is_on_device(const void* memory, std::size_t bytes) { return bytes == 0 || device_may_use(memory, bytes); }

bool hangs(int rank, std::size_t bytes) {
  const char* hanging = std::getenv("TRAINCTL_EMULATED_NCCL_HANGS");
  return hanging != nullptr && std::atoi(hanging) == rank && bytes >= 16 << 20;
}

// Sends the `bytes` bytes at `send` to all ranks; then calls finish(parts) with the bytes of all ranks, by rank, while
// device memory can be accessed.
ncclResult_t collective(ncclComm* communicator, cudaStream_t stream, const void* send, std::size_t bytes,
                        std::uint64_t signature, std::function<void(std::vector<std::vector<std::byte>>&)> finish) {
  // On all ranks, or on none:
  signature |= std::uint64_t{communicator->has_registered(send)} << 48 | std::uint64_t{is_captured(stream)} << 49;
  if (!is_on_device(send, bytes)) return fail(communicator, ncclInvalidArgument, "a buffer outside device memory");
  if (!has_buffers(communicator, -1)) return fail(communicator, ncclUnhandledCudaError, "out of memory");
  return submit(communicator, stream, [=] {
    const int ranks = communicator->link->ranks(), rank = communicator->link->rank();
    if (hangs(rank, bytes)) {
      while (!communicator->link->aborted()) usleep(1000);
      return;
    }
    std::vector<std::vector<std::byte>> parts(static_cast<std::size_t>(ranks), std::vector<std::byte>(bytes));
    auto& own = parts[static_cast<std::size_t>(rank)];
    {
      const DeviceAccess access;
      std::memcpy(own.data(), send, bytes);
    }
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      transfers.push_back({true, peer, own.data(), bytes});
      transfers.push_back({false, peer, parts[static_cast<std::size_t>(peer)].data(), bytes});
    }
    if (!exchange(communicator, std::move(transfers), signature)) return;
    const DeviceAccess access;
    finish(parts);
  });
}

ncclResult_t point_to_point(Transfer transfer, ncclComm* communicator, cudaStream_t stream) {
  if (!is_on_device(transfer.data, transfer.bytes)) {
    return fail(communicator, ncclInvalidArgument, "a buffer outside device memory");
  }
  if (!has_buffers(communicator, transfer.peer)) return fail(communicator, ncclUnhandledCudaError, "out of memory");
  Group& open = group();
  const bool alone = open.depth == 0;
  if (alone) ncclGroupStart();
  open.communicator = communicator;
  open.stream = stream;
  open.transfers.push_back(transfer);
  if (alone) return ncclGroupEnd();
  return communicator->blocking ? ncclSuccess : ncclInProgress;
}

// Called when all ranks have arrived; returns the result of connecting.
ncclResult_t connected(ncclComm* communicator) {
  const char* sharing = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool may_share = nccl_version() >= 23000 && sharing != nullptr && std::strcmp(sharing, "1") == 0;
  const std::string twice = communicator->link->duplicates();
  if (!twice.empty() && !may_share) return fail(communicator, ncclInvalidUsage, twice);
  communicator->connected = true;
  log_connections(communicator->link->rank(), communicator->link->ranks(), current_device());
  return ncclSuccess;
}

std::string device_name() {
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, current_device());
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}

// Memory that ncclMemAlloc() allocated and that is not freed yet.
std::set<void*>& own_memory() {
  static auto& all = *new std::set<void*>;
  return all;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = nccl_version();
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "%s", Link::unique_name().c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config != nullptr && config->magic != 0xcafebeef)
    return fail(nullptr, ncclInvalidArgument, "the configuration is not initialized");
  if (ranks > static_cast<int>(Link::max_ranks) || rank < 0 || rank >= ranks) {
    return fail(nullptr, ncclInvalidArgument, "the rank or the number of ranks is not valid");
  }
  *made = new ncclComm;
  (*made)->link = std::make_unique<Link>(id.internal, ranks, rank, device_name());
  (*made)->blocking = config == nullptr || config->blocking != 0;
  if (!(*made)->blocking) return ncclInProgress;
  while (!(*made)->link->complete()) usleep(100);
  return connected(*made);
}
ncclResult_t ncclCommInitRank(ncclComm_t* made, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(made, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  *error = communicator->error;
  if (*error != ncclSuccess) return ncclSuccess;
  if (!communicator->connected) {
    *error = communicator->link->complete() ? connected(communicator) : ncclInProgress;
    return ncclSuccess;
  }
  if (communicator->in_progress.empty()) return ncclSuccess;
  const std::vector<Queued> calls = std::move(communicator->in_progress);
  communicator->in_progress.clear();
  for (const Queued& queued : calls) *error = queue_now(communicator, queued);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  if (cudaMalloc(memory, bytes) != cudaSuccess) return fail(nullptr, ncclUnhandledCudaError, "no memory");
  own_memory().insert(*memory);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* memory) {
  if (own_memory().erase(memory) == 0) return fail(nullptr, ncclInvalidArgument, "memory that is not NCCL's is freed");
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(const ncclComm_t communicator, void* data, std::size_t bytes, void** handle) {
  const char* refuses = std::getenv("TRAINCTL_EMULATED_NCCL_REFUSES");  // the rank that cannot register
  if (refuses != nullptr && std::atoi(refuses) == communicator->link->rank()) return ncclInvalidUsage;
  if (!own_memory().contains(data)) return fail(communicator, ncclInvalidArgument, "memory that is not NCCL's");
  communicator->registered[static_cast<std::byte*>(data)] = bytes;
  *handle = data;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t communicator, void* handle) {
  const bool known = communicator->registered.erase(static_cast<std::byte*>(handle)) == 1;
  return known ? ncclSuccess : fail(communicator, ncclInvalidArgument, "memory that is not registered");
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  if (communicator->finalized) return fail(communicator, ncclInvalidUsage, "finalized twice");
  communicator->finalized = true;
  cudaDeviceSynchronize();
  return communicator->error;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  cudaDeviceSynchronize();
  delete communicator;
  return ncclSuccess;
}
// The communicator is not deleted, since other threads may be in the middle of a transfer.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  static auto& aborted = *new std::vector<ncclComm_t>;
  communicator->link->abort();
  communicator->error = ncclInternalError;
  aborted.push_back(communicator);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*) {
  return fail(nullptr, ncclInvalidUsage, "ncclCommSplit is not emulated");
}
ncclResult_t ncclCommCount(const ncclComm_t communicator, int* count) {
  *count = communicator->link->ranks();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t communicator, int* rank) {
  *rank = communicator->link->rank();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInProgress:
      return "in progress";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    default:
      return "internal error";
  }
}
const char* ncclGetLastError(ncclComm_t) { return last_error().c_str(); }

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  if (!is_on_device(receive, bytes)) return fail(communicator, ncclInvalidArgument, "a buffer outside device memory");
  return collective(communicator, stream, send, bytes, signature_of(__func__, type, operation), [=](auto& parts) {
    for (std::size_t r = 1; r < parts.size(); ++r) reduce(type, operation, parts[0].data(), parts[r].data(), count);
    std::memcpy(receive, parts[0].data(), bytes);
  });
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  const auto ranks = static_cast<std::size_t>(communicator->link->ranks());
  const std::size_t at = bytes * static_cast<std::size_t>(communicator->link->rank());
  if (!is_on_device(receive, bytes)) return fail(communicator, ncclInvalidArgument, "a buffer outside device memory");
  return collective(communicator, stream, send, bytes * ranks, signature_of(__func__, type, operation),
                    [=](auto& parts) {
                      for (std::size_t r = 1; r < parts.size(); ++r) {
                        reduce(type, operation, parts[0].data() + at, parts[r].data() + at, count);
                      }
                      std::memcpy(receive, parts[0].data() + at, bytes);
                    });
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  const auto ranks = static_cast<std::size_t>(communicator->link->ranks());
  if (!is_on_device(receive, bytes * ranks)) {
    return fail(communicator, ncclInvalidArgument, "a buffer outside device memory");
  }
  return collective(communicator, stream, send, bytes, signature_of(__func__, type, 0), [=](auto& parts) {
    for (std::size_t r = 0; r < parts.size(); ++r) {
      std::memcpy(static_cast<std::byte*>(receive) + r * bytes, parts[r].data(), bytes);
    }
  });
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  const bool is_root = communicator->link->rank() == root;
  if (!is_on_device(receive, bytes)) return fail(communicator, ncclInvalidArgument, "a buffer outside device memory");
  return collective(communicator, stream, is_root ? send : receive, bytes, signature_of(__func__, type, root),
                    [=](auto& parts) { std::memcpy(receive, parts[static_cast<std::size_t>(root)].data(), bytes); });
}
ncclResult_t ncclBcast(void* data, std::size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                       cudaStream_t stream) {
  return ncclBroadcast(data, data, count, type, root, communicator, stream);
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  return point_to_point({true, peer, bytes, count * size_of(type)}, communicator, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return point_to_point({false, peer, static_cast<std::byte*>(data), count * size_of(type)}, communicator, stream);
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
// Sends of a rank to itself are copied to their receives directly.
ncclResult_t ncclGroupEnd() {
  Group& open = group();
  if (--open.depth > 0 || open.communicator == nullptr) return ncclSuccess;
  const Group whole = std::exchange(open, {});
  const std::uint64_t signature =
      signature_of("ncclPointToPoint", ncclInt8, 0) | std::uint64_t{is_captured(whole.stream)} << 49;
  return submit(whole.communicator, whole.stream, [whole, signature] {
    const int rank = whole.communicator->link->rank();
    std::vector<Transfer> others;
    const std::byte* from_self = nullptr;
    for (const Transfer& t : whole.transfers) {
      if (t.peer != rank) others.push_back(t);
      if (t.peer == rank && t.sends) from_self = t.data;
    }
    for (const Transfer& t : whole.transfers) {
      if (t.peer != rank || t.sends || from_self == nullptr) continue;
      const DeviceAccess access;
      std::memmove(t.data, from_self, t.bytes);
    }
    exchange(whole.communicator, std::move(others), signature);
  });
}
}
