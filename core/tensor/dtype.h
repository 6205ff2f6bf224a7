// The dtypes of tensor elements, their sizes and names.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainctl {

enum class DType { float32, float64, bfloat16, float16, int32, int64, uint8 };

// The size of one element in bytes.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::bfloat16:
    case DType::float16:
      return 2;
    case DType::int64:
    case DType::float64:
      return 8;
    case DType::uint8:
      return 1;
  }
  return 0;
}

// The name of a dtype as in the config: "float32".
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float16:
      return "float16";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::uint8:
      return "uint8";
  }
  return "?";
}

}  // namespace trainctl
