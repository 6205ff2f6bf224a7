// Memory that is registered with NCCL, which then reduces it where it lies instead of through buffers of its own.
#pragma once

#include <memory>
#include <string>

#include "core/backend/memory.h"
#include "parallel/comm/nccl/library.h"

namespace trainctl {

// A communicator's registered memory.
class RegisteredMemory {
 public:
  explicit RegisteredMemory(std::shared_ptr<const NcclLibrary> library) : state_(new State{std::move(library)}) {}

  // Zeroed. Without data, and with a reason, where this NCCL cannot.
  Memory allocate(ncclComm_t ranks, std::int64_t bytes, std::string& why);
  // The communicator ends, and its registrations with it; the memory stays its owners'.
  void forget() { state_->ranks = nullptr; }

 private:
  struct State {
    std::shared_ptr<const NcclLibrary> library;
    ncclComm_t ranks = nullptr;
  };
  std::shared_ptr<State> state_;
};

}  // namespace trainctl
