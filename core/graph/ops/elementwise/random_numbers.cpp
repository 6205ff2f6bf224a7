// Shapes and placements of random numbers.
#include "core/graph/ops/elementwise/random_numbers.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string RandomNumbers::attributes() const {
  AttributeText text;
  text.word(distribution == Kind::normal ? "normal" : "uniform").value("sample", to_string(sample));
  return text.word(name_of(dtype)).value("seed", seed).value("layer", layer).text();
}

std::vector<TensorType> RandomNumbers::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == 3 && inputs[0].shape[0] == inputs[1].shape[0],
          "random_numbers: there is not one sample number for each sample");
  return {{sample.with_front(inputs[0].shape[0]), dtype}};
}

OutputPlacements RandomNumbers::placements(const PlacementQuery& query) const {
  // Each rank draws all numbers of its samples, since a number depends on its index in the whole sample.
  return place_by({{samples(query.input_types[0]), "a", ""}, {samples(query.output_types[0])}}, query);
}

double RandomNumbers::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return 10 * static_cast<double>(outputs[0].shape.count());
}

}  // namespace trainctl
