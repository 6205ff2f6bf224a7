// Implements Communicator with NCCL. Its calls never block: an unfinished call is polled until it is done or the
// deadline has passed, so that a hanging rank cannot hang the others. NCCL chooses links and network cards from the
// machine's topology, and its NCCL_* environment variables apply.
#include "parallel/comm/nccl/nccl.h"

#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "core/backend/cuda/runtime/streams.h"
#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/comm/call.h"
#include "parallel/comm/call_record.h"
#include "parallel/comm/nccl/library.h"
#include "parallel/comm/nccl/registered.h"

namespace trainctl {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// How long the destructor waits for the peers, and how long this process may take to end after the communicator has
// failed.
constexpr milliseconds finalize_timeout{5000};
constexpr milliseconds grace{30000};

// The first versions that can order the calls of several communicators (NCCL 2.26), and in which several ranks can use
// one GPU (NCCL 2.30).
constexpr int orders_launches = 22600, shares_gpus = 23000;

int version_of(const NcclLibrary& library) {
  int version = 0;
  library.get_version(&version);
  return version;
}

// Calls of several communicators of a GPU can wait for each other in a circle if the GPUs start them in different
// orders. With this variable NCCL starts them in the order in which this process queues them, which is the order of the
// rank's program. A call then takes some microseconds longer, so it is not set for a single communicator.
// NCCL_GRAPH_MIXING_SUPPORT keeps its default of 1, since a step that is not recorded may be queued while the graph of
// the step before it still runs. CUDA_DEVICE_MAX_CONNECTIONS is not set, since the order no longer depends on the
// number of hardware queues.
void order_launches() { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0); }

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return ncclFloat32;
    case DType::float64:
      return ncclFloat64;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float16:
      return ncclFloat16;
    case DType::int32:
      return ncclInt32;
    case DType::int64:
      return ncclInt64;
    case DType::uint8:
      return ncclUint8;
  }
  return ncclFloat32;
}

ncclRedOp_t operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return ncclSum;
    case Reduction::minimum:
      return ncclMin;
    case Reduction::maximum:
      return ncclMax;
  }
  return ncclSum;
}

class Nccl final : public Communicator, private cuda::Watch {
 public:
  Nccl(std::shared_ptr<const NcclLibrary> library, std::unique_ptr<Communicator> host, Backend& backend)
      : library_(std::move(library)), host_(std::move(host)), backend_(backend), registered_(library_) {
    record_.open(host_->attendance(), host_->world_ranks());
  }
  ~Nccl() override;
  // Connects the ranks. All ranks call this function once, before all other calls.
  void connect();

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  std::string_view name() const override { return "nccl"; }
  bool recordable() const override { return true; }
  bool runs_beside_others() const override { return version_of(*library_) >= orders_launches; }

  Memory allocate(std::int64_t bytes) override;

  void all_reduce(View data, Reduction reduction, Stream& stream) override;
  void reduce_scatter(View data, Reduction reduction, Stream& stream) override;
  void all_gather(View data, Stream& stream) override;
  void all_to_all(View send, View receive, Stream& stream) override;
  void broadcast(View data, int root, Stream& stream) override;
  void send(View data, int peer, Stream& stream) override;
  void receive(View data, int peer, Stream& stream) override;
  void barrier(Stream& stream) override;
  bool true_on_all(bool value) override { return host_->true_on_all(value); }

  // The record has when this process queues the calls. What the GPU does is not recorded.
  std::vector<int> world_ranks() const override { return host_->world_ranks(); }
  void describe_next(std::string_view text) override { record_.describe_next(text); }
  void set_background() override { record_.set_background(); }

  std::unique_ptr<Communicator> split(int color, int key) override {
    auto part = std::make_unique<Nccl>(library_, host_->split(color, key), backend_);
    part->connect();
    return part;
  }
  Attendance& attendance() override { return host_->attendance(); }
  // The process ends, so that no resource needs to be freed before.
  [[noreturn]] void abort(int exit_code) override {
    host_->abort(exit_code);
    std::_Exit(exit_code);  // gcc 12 does not see that a virtual function cannot return
  }

 private:
  // Queues a call: queue(communicator, stream) calls the NCCL function.
  template <class Queue>
  void submit(const Call& call, Stream& stream, Queue queue);
  void wait_until_queued(ncclResult_t result, std::string_view what);
  void check(milliseconds waited) override;
  std::string error_text(ncclResult_t result) const;
  std::string describe_missing_ranks();
  void abort_in_background();
  [[noreturn]] void fail(const std::string& reason);

  std::shared_ptr<const NcclLibrary> library_;
  std::unique_ptr<Communicator> host_;
  ImmediateStream host_stream_;
  Backend& backend_;
  std::shared_ptr<cuda::Waits> waits_;  // null before the first call
  ncclComm_t ranks_ = nullptr;          // null: the communicator has failed
  RegisteredMemory registered_;
  Memory barrier_value_;  // the value that a barrier sums
  CallRecord record_;
  Call last_;
  std::string reason_;  // why the communicator has failed
  // Becomes true when this object is destroyed.
  std::shared_ptr<std::atomic<bool>> left_ = std::make_shared<std::atomic<bool>>(false);
};

void Nccl::connect() {
  barrier_value_ = backend_.allocate(size_of(DType::int32));
  ncclUniqueId id{};
  if (rank() == 0) {
    const ncclResult_t result = library_->get_unique_id(&id);
    if (result != ncclSuccess) throw Error(ErrorKind::resource, format("ncclGetUniqueId: {}", error_text(result)));
  }
  host_->broadcast({&id, DType::uint8, sizeof id}, 0, host_stream_);
  host_stream_.synchronize();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  wait_until_queued(library_->init_rank(&ranks_, size(), id, rank(), &config), "connecting the GPUs");
  // A call that does not work fails here, before anything is recorded.
  const auto stream = backend_.asynchronous_stream();
  barrier(*stream);
  stream->synchronize();
}

// Memory is registered on all ranks or on no rank, since NCCL does not document a mixture.
Memory Nccl::allocate(std::int64_t bytes) {
  std::string why;
  Memory memory = registered_.allocate(ranks_, bytes, why);
  if (true_on_all(memory.data != nullptr)) {
    log::debug(format("NCCL reduces {} in place: the memory is registered", byte_text(bytes)));
    return memory;
  }
  if (!why.empty()) log::warning(format("NCCL does not reduce {} in place: {}", byte_text(bytes), why));
  memory = {};
  return backend_.allocate(bytes);
}

// The destructor waits for a short time for the peers, as NCCL requires, so that no data of a peer is still in transit.
// While an exception propagates it does not wait.
Nccl::~Nccl() {
  if (waits_) waits_->remove(*this);
  registered_.forget();
  left_->store(true);
  if (ranks_ == nullptr) return;
  ncclResult_t state = std::uncaught_exceptions() > 0 ? ncclInternalError : library_->finalize(ranks_);
  const auto start = Clock::now();
  while (state == ncclInProgress && Clock::now() - start < finalize_timeout) {
    sched_yield();
    if (library_->get_async_error(ranks_, &state) != ncclSuccess) state = ncclInternalError;
  }
  if (state == ncclSuccess) {
    library_->destroy(ranks_);
  } else {
    abort_in_background();
  }
}

void Nccl::all_reduce(View data, Reduction reduction, Stream& stream) {
  submit({.kind = CallKind::all_reduce, .reduction = reduction, .data = data}, stream,
         [&](ncclComm_t ranks, cudaStream_t on) {
           return library_->all_reduce(data.data, data.data, static_cast<std::size_t>(data.count), type_of(data.dtype),
                                       operation_of(reduction), ranks, on);
         });
}

void Nccl::reduce_scatter(View data, Reduction reduction, Stream& stream) {
  require(data.count % size() == 0, "reduce_scatter needs size() equal parts");
  const std::int64_t part = data.count / size();
  submit({.kind = CallKind::reduce_scatter, .reduction = reduction, .data = data}, stream,
         [&](ncclComm_t ranks, cudaStream_t on) {
           return library_->reduce_scatter(data.data, data.slice(rank() * part, part).data,
                                           static_cast<std::size_t>(part), type_of(data.dtype), operation_of(reduction),
                                           ranks, on);
         });
}

void Nccl::all_gather(View data, Stream& stream) {
  require(data.count % size() == 0, "all_gather needs size() equal parts");
  const std::int64_t part = data.count / size();
  submit({.kind = CallKind::all_gather, .data = data}, stream, [&](ncclComm_t ranks, cudaStream_t on) {
    return library_->all_gather(data.slice(rank() * part, part).data, data.data, static_cast<std::size_t>(part),
                                type_of(data.dtype), ranks, on);
  });
}

// Only new versions have ncclAlltoAll; a group of sends and receives works in every version.
void Nccl::all_to_all(View send, View receive, Stream& stream) {
  require(send.count % size() == 0 && send.count == receive.count && send.dtype == receive.dtype,
          "all_to_all needs size() equal parts on both sides");
  const std::int64_t part = send.count / size();
  const auto count = static_cast<std::size_t>(part);
  const ncclDataType_t type = type_of(send.dtype);
  submit({.kind = CallKind::all_to_all, .data = send, .result = receive}, stream,
         [&](ncclComm_t ranks, cudaStream_t on) {
           // ncclInProgress is not a failure of a call in a group: the calls start at the end of the group.
           ncclResult_t result = library_->group_start();
           const auto is_good = [&result] { return result == ncclSuccess || result == ncclInProgress; };
           for (int peer = 0; peer < size() && is_good(); ++peer) {
             result = library_->send(send.slice(peer * part, part).data, count, type, peer, ranks, on);
             if (!is_good()) break;
             result = library_->receive(receive.slice(peer * part, part).data, count, type, peer, ranks, on);
           }
           const ncclResult_t end = library_->group_end();
           return is_good() ? end : result;
         });
}

void Nccl::broadcast(View data, int root, Stream& stream) {
  require(root >= 0 && root < size(), "broadcast from a rank that does not exist");
  submit({.kind = CallKind::broadcast, .peer = root, .data = data}, stream, [&](ncclComm_t ranks, cudaStream_t on) {
    return library_->broadcast(data.data, data.data, static_cast<std::size_t>(data.count), type_of(data.dtype), root,
                               ranks, on);
  });
}

// The sends and receives of a pipeline are not grouped (ncclGroupStart, ncclGroupEnd). Calls must be grouped if they
// can only progress together, since a send may end only when its receive runs ("Point-to-point communication" in NCCL's
// user guide), and calls of several communicators must start in one order on all ranks ("Using multiple NCCL
// communicators concurrently"). All stages queue their messages in one common order
// (parallel/strategies/pipeline/events.h). Therefore the first unfinished message in this order has only finished calls
// before it on both of its ranks, and ends. This holds even if a rank runs all of its calls one after the other: in one
// hardware queue, in a recorded graph, or with an NCCL that cannot order communicators. NCCL_LAUNCH_ORDER_IMPLICIT
// keeps the order among the two communicators of a pipeline, which let both directions move at the same time. A group
// would add waits: it starts when the tensor to be sent is computed, and it ends when both of its messages have
// arrived.
void Nccl::send(View data, int peer, Stream& stream) {
  require(peer >= 0 && peer < size() && peer != rank(), "send to a rank that does not exist, or to oneself");
  submit({.kind = CallKind::send, .peer = peer, .data = data}, stream, [&](ncclComm_t ranks, cudaStream_t on) {
    return library_->send(data.data, static_cast<std::size_t>(data.count), type_of(data.dtype), peer, ranks, on);
  });
}

void Nccl::receive(View data, int peer, Stream& stream) {
  require(peer >= 0 && peer < size() && peer != rank(), "receive from a rank that does not exist, or from oneself");
  submit({.kind = CallKind::receive, .peer = peer, .data = data}, stream, [&](ncclComm_t ranks, cudaStream_t on) {
    return library_->receive(data.data, static_cast<std::size_t>(data.count), type_of(data.dtype), peer, ranks, on);
  });
}

void Nccl::barrier(Stream& stream) {
  submit({.kind = CallKind::barrier}, stream, [&](ncclComm_t ranks, cudaStream_t on) {
    return library_->all_reduce(barrier_value_.get(), barrier_value_.get(), 1, ncclInt32, ncclSum, ranks, on);
  });
}

template <class Queue>
void Nccl::submit(const Call& call, Stream& stream, Queue queue) {
  if (ranks_ == nullptr) throw Error(ErrorKind::peer, format("the communicator has failed: {}", reason_));
  const FlightEntry entry = record_.entry_of(call);
  if (call.kind != CallKind::barrier && call.data.count == 0) return;
  auto& on = static_cast<cuda::CudaStream&>(stream);
  if (!waits_) {
    waits_ = on.waits();
    waits_->add(*this);
  }
  last_ = call;
  const FlightScope recorded(record_.line(), entry);
  wait_until_queued(queue(ranks_, on.get()), name_of(call.kind));
}

// Waits until NCCL has queued all operations on its stream, or is connected.
void Nccl::wait_until_queued(ncclResult_t result, std::string_view what) {
  PeerWait wait(attendance());
  while (result == ncclInProgress) {
    const ncclResult_t asked = library_->get_async_error(ranks_, &result);
    if (asked != ncclSuccess) result = asked;
    if (result != ncclInProgress) break;
    if (!wait.goes_on()) fail(format("{}: {}", what, describe_missing_ranks()));
    sched_yield();
  }
  if (result != ncclSuccess) fail(format("{}: {}", what, error_text(result)));
}

void Nccl::check(milliseconds waited) {
  if (ranks_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = library_->get_async_error(ranks_, &state);
  if (asked != ncclSuccess) state = asked;
  if (state != ncclSuccess && state != ncclInProgress)
    fail(format("NCCL: {}; {}", error_text(state), describe_missing_ranks()));
  attendance().answer();
  if (attendance().has_ended()) fail(attendance().reason());
  const milliseconds deadline = attendance().deadline();
  if (deadline.count() == 0 || waited < deadline) return;
  fail(format("waited {} s for the GPU; the last call to the peers was {}: {}", deadline.count() * 1e-3,
              describe(last_), describe_missing_ranks()));
}

std::string Nccl::error_text(ncclResult_t result) const {
  const char* detail = ranks_ == nullptr ? nullptr : library_->last_error(ranks_);
  const bool more = detail != nullptr && *detail != 0;
  return format("{}{}{}", library_->error_string(result), more ? ": " : "", more ? detail : "");
}

// Names the absent ranks by a roll call, since NCCL does not report which ranks it waits for.
std::string Nccl::describe_missing_ranks() {
  const std::vector<int> absent = attendance().absent();
  if (attendance().has_ended()) return attendance().reason();
  if (absent.empty()) return "all ranks answer, but no data arrives from their GPUs";
  return format("{} did not arrive within {} s", attendance().name(absent), attendance().deadline().count() * 1e-3);
}

// Ends the kernels that wait for peers. ncclCommAbort may itself wait, in particular for graphs to be destroyed, so it
// runs on its own thread.
void Nccl::abort_in_background() {
  registered_.forget();
  std::thread([library = library_, ranks = std::exchange(ranks_, nullptr)] { library->abort(ranks); }).detach();
}

// Throws Error{peer}. Unwinding frees device memory, which waits for kernels: if a kernel does not end, another thread
// ends the process.
void Nccl::fail(const std::string& reason) {
  reason_ = reason;
  attendance().end(reason);
  if (ranks_ != nullptr) abort_in_background();
  std::thread([reason, left = left_] {
    std::this_thread::sleep_for(grace);
    if (*left) return;
    log::error(reason);
    std::_Exit(exit_code(ErrorKind::peer));
  }).detach();
  throw Error(ErrorKind::peer, reason);
}

}  // namespace

LibraryVersion nccl_version() {
  const auto text = [](int version) {
    return format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);  // encoding of versions since 2.9
  };
  std::string why;
  const auto library = load_nccl(why);
  const int found = library ? version_of(*library) : 0;
  return {"NCCL", text(NCCL_VERSION_CODE), found == 0 ? "" : text(found)};
}

std::string why_no_nccl() {
  std::string why;
  load_nccl(why);
  return why;
}

bool nccl_shares_gpus() {
  std::string why;
  const auto library = load_nccl(why);
  const char* enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return library && version_of(*library) >= shares_gpus && enabled != nullptr && std::string_view(enabled) == "1";
}

std::unique_ptr<Communicator> nccl_communicator(std::unique_ptr<Communicator> host, Backend& backend, bool will_split) {
  std::string why;
  auto library = load_nccl(why);
  if (!library) throw Error(ErrorKind::resource, "NCCL: " + why, "set cluster.communication to auto or staged");
  if (will_split) order_launches();  // NCCL reads the variable at its first call
  auto communicator = std::make_unique<Nccl>(std::move(library), std::move(host), backend);
  communicator->connect();
  return communicator;
}

}  // namespace trainctl
