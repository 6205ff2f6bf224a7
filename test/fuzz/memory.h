// The bytes of an input in memory, as readers take them.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>

#include "io/datasets/arrays/bytes.h"

namespace trainctl::fuzz {

// A copy of the bytes, after which AddressSanitizer finds every access beyond the end.
inline Bytes in_memory(std::string_view bytes) {
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return {std::shared_ptr<const std::byte>(copy, copy.get()), static_cast<std::int64_t>(bytes.size())};
}

}  // namespace trainctl::fuzz
