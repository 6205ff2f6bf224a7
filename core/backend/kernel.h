// A kernel: an op bound to the addresses of its tensors, which runs any number of times without allocating.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/stream.h"

namespace trainctl {

// One instance of the memory that a micro-batch's activations, inputs and workspace lie in.
struct Slot {
  int index = 0;
  std::byte* base = nullptr;
};

// Where a tensor lies: at a fixed address, or relative to the base of the slot that a run names.
struct Address {
  std::byte* fixed = nullptr;  // null: slot-relative
  std::int64_t offset = 0;     // bytes

  std::byte* at(const Slot& slot) const { return (fixed ? fixed : slot.base) + offset; }
  template <class T>
  T* as(const Slot& slot) const {
    return reinterpret_cast<T*>(at(slot));
  }
  // The address `bytes` behind this one.
  Address operator+(std::int64_t bytes) const { return {fixed, offset + bytes}; }
  bool operator==(const Address&) const = default;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Queues the op on the stream, on the tensors of this slot. Allocates nothing, takes no lock.
  virtual void run(Stream& stream, const Slot& slot) = 0;
};

}  // namespace trainctl
