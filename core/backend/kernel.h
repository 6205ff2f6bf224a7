// A kernel: an op bound to the addresses of its tensors, which runs any number of times without allocating.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/stream.h"

namespace trainctl {

// One instance of the memory for a micro-batch's activations, inputs and workspace.
struct Slot {
  int index = 0;
  std::byte* base = nullptr;
};

// The address of a tensor: fixed, or relative to the base of the slot that is passed to Kernel::run().
struct Address {
  std::byte* fixed = nullptr;  // null: relative to the slot
  std::int64_t offset = 0;     // bytes

  std::byte* at(const Slot& slot) const { return (fixed ? fixed : slot.base) + offset; }
  template <class T>
  T* as(const Slot& slot) const {
    return reinterpret_cast<T*>(at(slot));
  }
  // The address `bytes` after this one.
  Address operator+(std::int64_t bytes) const { return {fixed, offset + bytes}; }
  bool operator==(const Address&) const = default;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Queues the op on the stream, with the tensors of this slot. Allocates no memory and takes no lock.
  virtual void run(Stream& stream, const Slot& slot) = 0;
};

}  // namespace trainctl
