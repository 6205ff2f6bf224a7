// Rules of sums in the order of a tree.
#include "core/graph/ops/tree_sum.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

// The summands as text: "0.1+ 1.0++": part 1 of input 0 and one addition, then part 0 of input 1 and two.
std::string TreeSum::attributes() const {
  AttributeText text;
  for (const Summand& summand : summands) {
    text.word(
        format("{}.{}{}", summand.input, summand.part, std::string(static_cast<std::size_t>(summand.merges), '+')));
  }
  if (across) text.word(format("over {}", name_of(axis)));
  return text.text();
}

std::vector<TensorType> TreeSum::outputs(std::span<const TensorType> inputs) const {
  require(!summands.empty() && std::ssize(summands) <= most_summands, "tree_sum: from 1 to 256 summands");
  int depth = 0;
  for (const Summand& summand : summands) {
    require(summand.part < parts && summand.input < std::ssize(inputs), "tree_sum: a summand is a part of an input");
    depth += 1 - summand.merges;
    require(depth >= 1, "tree_sum: an addition has two summands");
  }
  require(depth == 1, "tree_sum: the additions leave one sum");
  const std::int64_t count = inputs[0].shape.count();
  require(count % parts == 0, "tree_sum: the parts are equally long");
  for (const TensorType& input : inputs) {
    require(input.dtype == DType::float32 && input.shape.count() == count, "tree_sum: inputs are float32 and alike");
  }
  return {{{count / parts}, DType::float32}};
}

OutputPlacements TreeSum::placements(const PlacementQuery& query) const {
  const Placement& first = query.inputs[0];
  for (std::size_t i = 1; i < query.inputs.size(); ++i) {
    if (query.inputs[i] != first) {
      return {{},
              format("{} is {} and {} is {}", query.input_name(0), to_string(first), query.input_name(i),
                     to_string(query.inputs[i]))};
    }
  }
  if (!across || query.axis != axis) return {{first}, {}};
  if (first == varying) return {{split_along(0)}, {}};
  return {{}, format("{} is {}, not what the ranks sent", query.input_name(0), to_string(first))};
}

double TreeSum::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return static_cast<double>(outputs[0].shape.count()) * static_cast<double>(summands.size() - 1);
}

}  // namespace trainctl
