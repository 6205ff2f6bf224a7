// Rounding.
#include "io/weights/bfloat16_tensors.h"

#include <algorithm>

#include "io/weights/float32.h"

namespace trainctl {

Bfloat16Tensors::Bfloat16Tensors(std::span<const NamedTensor> from) {
  for (const NamedTensor& tensor : from) {
    const auto* values = tensor.view.as<const float>();
    std::vector<std::uint16_t>& bits = memory_.emplace_back(static_cast<std::size_t>(tensor.view.count));
    std::transform(values, values + tensor.view.count, bits.begin(), to_bfloat16);
    tensors.push_back(tensor);
    tensors.back().view = {bits.data(), DType::bfloat16, tensor.view.count};
  }
}

}  // namespace trainctl
