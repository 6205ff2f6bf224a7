// Memory that is registered with NCCL, which then reduces it in place instead of through its own buffers.
#pragma once

#include <memory>
#include <string>

#include "core/backend/memory.h"
#include "parallel/comm/nccl/library.h"

namespace trainctl {

// The registered memory of one communicator.
class RegisteredMemory {
 public:
  explicit RegisteredMemory(std::shared_ptr<const NcclLibrary> library) : state_(new State{std::move(library)}) {}

  // Allocates zeroed memory. If this version of NCCL cannot allocate it, returns memory without data and sets `why`.
  Memory allocate(ncclComm_t ranks, std::int64_t bytes, std::string& why);
  // Called when the communicator, and with it its registrations, ends; the memory remains valid.
  void forget() { state_->ranks = nullptr; }

 private:
  struct State {
    std::shared_ptr<const NcclLibrary> library;
    ncclComm_t ranks = nullptr;
  };
  std::shared_ptr<State> state_;
};

}  // namespace trainctl
