// Collectives of devices, in chunks: each is copied from the device into page-locked memory, reduced or sent by the
// host communicator, and copied back.
#include "parallel/comm/communicators.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "parallel/comm/call.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

constexpr std::int64_t buffer_bytes = 4 << 20;

// The parts of the data that a call reads or writes on this rank.
enum class Parts { none, own, all };

class Staged final : public Communicator {
 public:
  Staged(std::unique_ptr<Communicator> host, Backend& backend)
      : host_(std::move(host)), backend_(backend), host_stream_(backend.asynchronous_stream()) {
    for (StagingBuffer& buffer : buffers_) {
      buffer.sent = backend.allocate_host(buffer_bytes);
      buffer.received = backend.allocate_host(buffer_bytes);
      buffer.fetched = backend.event();
      buffer.done = backend.event();
    }
  }
  ~Staged() override = default;

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  std::string_view name() const override { return "staged"; }
  bool recordable() const override { return false; }
  Memory allocate(std::int64_t bytes) override { return backend_.allocate(bytes); }

  void all_reduce(View data, Reduction reduction, Stream& stream) override {
    submit({.kind = CallKind::all_reduce, .reduction = reduction, .data = data, .result = data}, Parts::all, Parts::all,
           1, stream);
  }
  void reduce_scatter(View data, Reduction reduction, Stream& stream) override {
    submit({.kind = CallKind::reduce_scatter, .reduction = reduction, .data = data, .result = data}, Parts::all,
           Parts::own, size(), stream);
  }
  void all_gather(View data, Stream& stream) override {
    submit({.kind = CallKind::all_gather, .data = data, .result = data}, Parts::own, Parts::all, size(), stream);
  }
  void all_to_all(View send, View receive, Stream& stream) override {
    require(send.count == receive.count && send.dtype == receive.dtype,
            "all_to_all needs the same number of elements and dtype on both sides");
    submit({.kind = CallKind::all_to_all, .data = send, .result = receive}, Parts::all, Parts::all, size(), stream);
  }
  void broadcast(View data, int root, Stream& stream) override {
    const bool sends = root == rank();
    submit({.kind = CallKind::broadcast, .peer = root, .data = data, .result = data}, sends ? Parts::all : Parts::none,
           sends ? Parts::none : Parts::all, 1, stream);
  }
  void send(View data, int peer, Stream& stream) override {
    submit({.kind = CallKind::send, .peer = peer, .data = data, .result = data}, Parts::all, Parts::none, 1, stream);
  }
  void receive(View data, int peer, Stream& stream) override {
    submit({.kind = CallKind::receive, .peer = peer, .data = data, .result = data}, Parts::none, Parts::all, 1, stream);
  }
  void barrier(Stream& stream) override {
    StagingBuffer& buffer = buffers_.front();
    buffer.fetched->record(stream);
    buffer.fetched->wait(*host_stream_);
    limit_queued_calls();
    host_->barrier(*host_stream_);
    buffer.done->record(*host_stream_);
    buffer.done->wait(stream);
  }
  bool true_on_all(bool value) override {
    return !any_rank(!value, *host_, *host_stream_);  // after the calls that are queued
  }

  std::vector<int> world_ranks() const override { return host_->world_ranks(); }
  void describe_next(std::string_view text) override { host_->describe_next(text); }
  void set_background() override { host_->set_background(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return std::make_unique<Staged>(host_->split(color, key), backend_);
  }
  Attendance& attendance() override { return host_->attendance(); }
  [[noreturn]] void abort(int exit_code) override {
    host_->abort(exit_code);
    std::_Exit(exit_code);  // gcc 12 does not see that a virtual function cannot return
  }

 private:
  struct StagingBuffer {
    Memory sent, received;  // only all_to_all needs `received`
    // Recorded when the chunk has come from the device, and when the host communicator is done with it.
    std::unique_ptr<Event> fetched, done;
  };

  // A range of elements of each part, which pass through a buffer together.
  struct Chunk {
    std::int64_t first, count;
  };

  // The host communicator queues a limited number of calls. This function waits until that queue has space, and throws
  // if a call has failed.
  void limit_queued_calls() {
    if (++calls_ % 32 == 0) host_stream_->synchronize();
  }
  void submit(const Call& call, Parts reads, Parts writes, int parts, Stream& stream);
  void run_on_host(const Call& call, StagingBuffer& buffer, std::int64_t count);
  template <class Copy>
  void each_part(Parts which, int parts, Copy copy) {
    if (which == Parts::none) return;
    const int only = which == Parts::own ? rank() : -1;
    for (int part = only < 0 ? 0 : only; part < (only < 0 ? parts : only + 1); ++part) copy(part);
  }

  std::unique_ptr<Communicator> host_;
  Backend& backend_;
  unsigned calls_ = 0;
  std::array<StagingBuffer, 2> buffers_;
  std::unique_ptr<Stream> host_stream_;  // runs the host communicator's collectives; its destructor waits for them
};

// The buffers alternate: while the host communicator reduces one chunk, the previous one is copied back and the next
// one is fetched.
void Staged::submit(const Call& call, Parts reads, Parts writes, int parts, Stream& stream) {
  require(call.data.count % parts == 0, "the data must consist of size() equal parts");
  const std::int64_t part_count = call.data.count / parts;
  const std::int64_t width = size_of(call.data.dtype);
  const std::int64_t chunk_size = std::max<std::int64_t>(1, buffer_bytes / (width * parts) / 16 * 16);
  const auto fetch = [&](const Chunk& chunk, StagingBuffer& buffer) {
    each_part(reads, parts, [&](int part) {
      backend_.copy(buffer.sent.get() + part * chunk.count * width,
                    call.data.slice(part * part_count + chunk.first, chunk.count).data, chunk.count * width, stream);
    });
    buffer.fetched->record(stream);
    buffer.fetched->wait(*host_stream_);
    limit_queued_calls();
    run_on_host(call, buffer, chunk.count * parts);
    buffer.done->record(*host_stream_);
  };
  const auto copy_back = [&](const Chunk& chunk, StagingBuffer& buffer) {
    buffer.done->wait(stream);
    const Memory& from = call.kind == CallKind::all_to_all ? buffer.received : buffer.sent;
    each_part(writes, parts, [&](int part) {
      backend_.copy(call.result.slice(part * part_count + chunk.first, chunk.count).data,
                    from.get() + part * chunk.count * width, chunk.count * width, stream);
    });
  };
  Chunk previous{0, 0};
  int current = 0;
  for (std::int64_t first = 0; first < part_count; first += chunk_size, current ^= 1) {
    const Chunk chunk{first, std::min(chunk_size, part_count - first)};
    fetch(chunk, buffers_[static_cast<std::size_t>(current)]);
    if (previous.count > 0) copy_back(previous, buffers_[static_cast<std::size_t>(current ^ 1)]);
    previous = chunk;
  }
  if (previous.count > 0) copy_back(previous, buffers_[static_cast<std::size_t>(current ^ 1)]);
}

void Staged::run_on_host(const Call& call, StagingBuffer& buffer, std::int64_t count) {
  const View data{buffer.sent.get(), call.data.dtype, count};
  switch (call.kind) {
    case CallKind::all_reduce:
      return host_->all_reduce(data, call.reduction, *host_stream_);
    case CallKind::reduce_scatter:
      return host_->reduce_scatter(data, call.reduction, *host_stream_);
    case CallKind::all_gather:
      return host_->all_gather(data, *host_stream_);
    case CallKind::all_to_all:
      return host_->all_to_all(data, {buffer.received.get(), data.dtype, count}, *host_stream_);
    case CallKind::broadcast:
      return host_->broadcast(data, call.peer, *host_stream_);
    case CallKind::send:
      return host_->send(data, call.peer, *host_stream_);
    case CallKind::receive:
      return host_->receive(data, call.peer, *host_stream_);
    case CallKind::barrier:
      return host_->barrier(*host_stream_);
  }
}

}  // namespace

std::unique_ptr<Communicator> staged_communicator(std::unique_ptr<Communicator> host, Backend& backend) {
  return std::make_unique<Staged>(std::move(host), backend);
}

}  // namespace trainctl
