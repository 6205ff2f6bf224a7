// Memory of a device or of a communicator, which is freed with its last owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace trainctl {

struct Memory {
  std::shared_ptr<std::byte> data;  // at least 64-byte aligned; the deleter returns it to its allocator
  std::int64_t bytes = 0;

  std::byte* get() const { return data.get(); }
};

}  // namespace trainctl
