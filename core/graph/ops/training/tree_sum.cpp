// Shapes and placements of TreeSum.
#include "core/graph/ops/training/tree_sum.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

// The summands as text. "0.1+ 1.0++" means part 1 of input 0 and one addition, then part 0 of input 1 and two
// additions.
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
  require(!summands.empty() && std::ssize(summands) <= max_summands, "tree_sum: no summands, or more than 256");
  const std::int64_t all = inputs.back().shape.count(), count = all / parts;
  require(all % parts == 0, "tree_sum: the parts differ in length");
  for (const TensorType& input : inputs) {
    const std::int64_t elements = input.shape.count();
    require(input.dtype == DType::float32 && (elements == all || elements == count),
            "tree_sum: an input is not float32, or does not have the length of one part or of all parts");
  }
  int depth = 0;
  for (const Summand& summand : summands) {
    require(summand.input < std::ssize(inputs), "tree_sum: a summand refers to an input that does not exist");
    const std::int64_t end = (summand.part + 1) * count;
    require(end <= inputs[static_cast<std::size_t>(summand.input)].shape.count(),
            "tree_sum: a summand refers to a part that its input does not have");
    depth += 1 - summand.merges;
    require(depth >= 1, "tree_sum: an addition has fewer than two summands");
  }
  require(depth == 1, "tree_sum: the additions leave more than one sum");
  return {{{count}, DType::float32}};
}

OutputPlacements TreeSum::placements(const PlacementQuery& query) const {
  const bool over = across && query.axis == axis;
  const Placement first = over ? varying : query.inputs[0], otherwise = over ? split_along(0) : first;
  for (std::size_t i = 0; i < query.inputs.size(); ++i) {
    if (query.inputs[i] == first || (query.inputs[i] == otherwise && i + 1 < query.inputs.size())) continue;
    const std::string expected =
        over ? "received from the ranks" : format("{} as {} is", to_string(first), query.input_name(0));
    return {{}, format("{} is {}, not {}", query.input_name(i), to_string(query.inputs[i]), expected)};
  }
  return {{otherwise}, {}};
}

double TreeSum::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return static_cast<double>(outputs[0].shape.count()) * static_cast<double>(summands.size() - 1);
}

}  // namespace trainctl
