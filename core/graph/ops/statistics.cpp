// Rules of running statistics.
#include "core/graph/ops/statistics.h"

#include <algorithm>
#include <functional>

#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string AccumulateStatistics::attributes() const { return AttributeText().flag("accumulate", accumulate).text(); }

std::vector<TensorType> AccumulateStatistics::outputs(std::span<const TensorType> inputs) const {
  return {inputs.begin(), inputs.end() - 1};
}

// The momentum of all, or of each where they differ.
std::string UpdateStatistics::attributes() const {
  AttributeText text;
  const bool equal = std::adjacent_find(momenta.begin(), momenta.end(), std::not_equal_to<>()) == momenta.end();
  for (std::size_t i = 0; i < (equal ? 1 : momenta.size()); ++i) text.value("momentum", momenta[i]);
  return text.text();
}

std::vector<TensorType> UpdateStatistics::outputs(std::span<const TensorType> inputs) const {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(momenta.size())};
}

}  // namespace trainctl
