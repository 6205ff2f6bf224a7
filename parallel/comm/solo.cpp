// Collectives of a rank that is alone.
#include "parallel/comm/communicators.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "parallel/comm/host_memory.h"
#include "parallel/comm/queued.h"

namespace trainctl {

namespace {

[[noreturn]] void leave(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

class Solo final : public QueuedCommunicator {
 public:
  Solo() : QueuedCommunicator(std::make_shared<Attendance>()) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view name() const override { return "solo"; }
  Memory allocate(std::int64_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Communicator> split(int, int) override { return solo_communicator(); }
  [[noreturn]] void abort(int exit_code) override { leave(exit_code); }

 private:
  void run(const Call& call) override {
    if (call.kind == CallKind::all_to_all && call.data.count > 0) {
      std::memmove(call.result.data, call.data.data, static_cast<std::size_t>(call.data.bytes()));
    }
  }
};

class DeviceSolo final : public Communicator {
 public:
  explicit DeviceSolo(Backend& backend) : backend_(backend) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view name() const override { return "solo"; }
  bool recordable() const override { return true; }
  Memory allocate(std::int64_t bytes) override { return backend_.allocate(bytes); }
  void all_reduce(View, Reduction, Stream&) override {}
  void reduce_scatter(View, Reduction, Stream&) override {}
  void all_gather(View, Stream&) override {}
  void all_to_all(View send, View receive, Stream& stream) override {
    backend_.copy(receive.data, send.data, send.bytes(), stream);
  }
  void broadcast(View, int root, Stream&) override { require(root == 0, "broadcast from a rank that does not exist"); }
  void send(View, int, Stream&) override { require(false, "a rank that is alone has no peer to send to"); }
  void receive(View, int, Stream&) override { require(false, "a rank that is alone has no peer to receive from"); }
  void barrier(Stream&) override {}
  std::unique_ptr<Communicator> split(int, int) override { return solo_communicator(backend_); }
  Attendance& attendance() override { return attendance_; }
  [[noreturn]] void abort(int exit_code) override { leave(exit_code); }

 private:
  Backend& backend_;
  Attendance attendance_;
};

}  // namespace

std::unique_ptr<Communicator> solo_communicator() { return std::make_unique<Solo>(); }

std::unique_ptr<Communicator> solo_communicator(Backend& backend) { return std::make_unique<DeviceSolo>(backend); }

}  // namespace trainctl
