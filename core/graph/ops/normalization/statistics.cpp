// Shapes and placements of the ops for running statistics.
#include "core/graph/ops/normalization/statistics.h"

#include <algorithm>
#include <functional>

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string AccumulateStatistics::attributes() const { return AttributeText().flag("accumulate", accumulate).text(); }

std::vector<TensorType> AccumulateStatistics::outputs(std::span<const TensorType> inputs) const {
  return {inputs.begin(), inputs.end() - 1};
}

// Each statistic has its own placement. The product of a statistic and the number of a rank's samples is a partial sum,
// both for a replicated statistic and for the statistic of the rank's own samples.
OutputPlacements AccumulateStatistics::placements(const PlacementQuery& query) const {
  OutputPlacements result;
  const std::size_t count = query.inputs.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const Placement inputs[] = {query.inputs[i], query.inputs[count]};
    const TensorType types[] = {query.input_types[i], query.input_types[count]};
    const PlacementQuery one{query.axis, inputs, types, {}, {}, {}, {}};
    const bool common = inputs[0] == replicated && inputs[1] != replicated;
    OutputPlacements sum = place_by({{common ? "c" : "c|a", "+a"}, {"c+a"}}, one);
    if (!sum.problem.empty()) {
      return {{},
              format("the number of samples is {} where {} is {}", to_string(inputs[1]), query.input_name(i),
                     to_string(inputs[0]))};
    }
    result.outputs.push_back(sum.outputs[0]);
  }
  return kept_if(accumulate, std::move(result), query);
}

// One momentum if all are equal, otherwise the momentum of each statistic.
std::string UpdateStatistics::attributes() const {
  AttributeText text;
  const bool equal = std::adjacent_find(momenta.begin(), momenta.end(), std::not_equal_to<>()) == momenta.end();
  for (std::size_t i = 0; i < (equal ? 1 : momenta.size()); ++i) text.value("momentum", momenta[i]);
  return text.text();
}

std::vector<TensorType> UpdateStatistics::outputs(std::span<const TensorType> inputs) const {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(momenta.size())};
}

// Each statistic has its own placement.
OutputPlacements UpdateStatistics::placements(const PlacementQuery& query) const {
  OutputPlacements result;
  const auto common = query.inputs.subspan(momenta.size());
  if (std::any_of(common.begin(), common.end(), [](const Placement& input) { return input != replicated; })) {
    return {{},
            format("the count is {}, the agree flags are {}, the gradient norm is {}", to_string(common[0]),
                   to_string(common[1]), to_string(common[2]))};
  }
  for (std::size_t i = 0; i < momenta.size(); ++i) {
    const Placement& sum = query.inputs[i];
    if (sum != replicated && sum != split_along(0)) {
      return {{}, format("{}, the sum of a statistic, is {}", query.input_name(i), to_string(sum))};
    }
    result.outputs.push_back(sum);
  }
  return kept_if(true, std::move(result), query);
}

}  // namespace trainctl
