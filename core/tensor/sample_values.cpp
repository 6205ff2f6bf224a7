// Copies the values of a sample as float32.
#include "core/tensor/sample_values.h"

namespace trainctl {

std::vector<float> sample_values(const View& batch, std::int64_t sample, std::int64_t count) {
  const auto copy = [&](const auto* values) {
    return std::vector<float>(values + sample * count, values + (sample + 1) * count);
  };
  if (batch.dtype == DType::float32) return copy(batch.as<float>());
  if (batch.dtype == DType::uint8) return copy(batch.as<std::uint8_t>());
  return {};
}

}  // namespace trainctl
