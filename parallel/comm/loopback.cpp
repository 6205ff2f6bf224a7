// Collectives of a rank without peers, for timing.
#include "parallel/comm/communicators.h"

#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/tensor/random_values.h"

namespace trainctl {
namespace {

class Loopback final : public Communicator {
 public:
  Loopback(int rank, int size, Backend& backend, Communicator& memory, std::function<void(View)> reduced)
      : rank_(rank), size_(size), backend_(backend), memory_(memory), reduced_(std::move(reduced)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view name() const override { return "loopback"; }
  bool recordable() const override { return true; }
  Memory allocate(std::int64_t bytes) override { return memory_.allocate(bytes); }

  void all_reduce(View data, Reduction, Stream&) override {
    if (reduced_) reduced_(data);
  }
  void reduce_scatter(View, Reduction, Stream&) override {}
  void all_gather(View data, Stream& stream) override {
    const std::int64_t count = data.count / size_;
    const View own = data.slice(rank_ * count, count);
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) backend_.copy(data.slice(rank * count, count).data, own.data, own.bytes(), stream);
    }
  }
  void all_to_all(View send, View receive, Stream& stream) override {
    backend_.copy(receive.data, send.data, send.bytes(), stream);
  }
  void broadcast(View, int, Stream&) override {}
  void send(View, int, Stream&) override {}
  void receive(View data, int, Stream& stream) override {
    backend_.copy(data.data, received(data), data.bytes(), stream);
  }
  void barrier(Stream&) override {}
  bool true_on_all(bool value) override { return value; }

  std::unique_ptr<Communicator> split(int, int) override {
    require(false, "a loopback communicator cannot be split");
    return nullptr;
  }
  Attendance& attendance() override { return memory_.attendance(); }
  [[noreturn]] void abort(int exit_code) override {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }

 private:
  // Random values in host memory, allocated for the first message of a dtype and again for longer ones.
  const void* received(View data) {
    Memory& values = received_[data.dtype];
    if (values.bytes < data.bytes()) {
      values = backend_.allocate_host(data.bytes());
      fill_random({values.get(), data.dtype, data.count}, 1, 2);
    }
    return values.get();
  }

  int rank_, size_;
  Backend& backend_;
  Communicator& memory_;
  std::function<void(View)> reduced_;
  std::map<DType, Memory> received_;
};

}  // namespace

std::unique_ptr<Communicator> loopback_communicator(int rank, int size, Backend& backend, Communicator& memory,
                                                    std::function<void(View)> reduced) {
  return std::make_unique<Loopback>(rank, size, backend, memory, std::move(reduced));
}

}  // namespace trainctl
