// A view of typed memory: address, element type and count travel together, so that a byte size can never be taken for a
// count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl {

struct View {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t count = 0;  // elements

  std::int64_t bytes() const { return count * size_of(dtype); }

  // Elements [offset, offset + length).
  View part(std::int64_t offset, std::int64_t length) const {
    return {static_cast<std::byte*>(data) + offset * size_of(dtype), dtype, length};
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace trainctl
