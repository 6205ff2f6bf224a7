// Owned memory of a device or of a communicator, freed with its last owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace trainctl {

struct Memory {
  std::shared_ptr<std::byte> data;  // at least 64-byte aligned; the deleter returns it to where it was allocated
  std::int64_t bytes = 0;

  std::byte* get() const { return data.get(); }
};

}  // namespace trainctl
