// Collectives of one rank.
#include "parallel/comm/solo.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "parallel/comm/host_memory.h"
#include "parallel/comm/queued.h"

namespace trainctl {

namespace {

class Solo final : public QueuedCommunicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view name() const override { return "solo"; }
  Memory allocate(std::int64_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Communicator> split(int, int) override { return solo_communicator(); }

  [[noreturn]] void abort(int exit_code) override {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }

 private:
  void run(const Call& call) override {
    if (call.kind == Collective::all_to_all && call.data.count > 0) {
      std::memmove(call.result.data, call.data.data, static_cast<std::size_t>(call.data.bytes()));
    }
  }
};

}  // namespace

std::unique_ptr<Communicator> solo_communicator() { return std::make_unique<Solo>(); }

}  // namespace trainctl
