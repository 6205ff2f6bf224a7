// A view of typed memory: address, dtype and number of elements in one object, so that a size in bytes is never
// mistaken for a number of elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl {

struct View {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t count = 0;  // number of elements

  std::int64_t bytes() const { return count * size_of(dtype); }

  // Elements [offset, offset + length).
  View slice(std::int64_t offset, std::int64_t length) const {
    return {static_cast<std::byte*>(data) + offset * size_of(dtype), dtype, length};
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace trainctl
