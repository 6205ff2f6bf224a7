// Initial values, computed by every rank alike.
#include "parallel/trainer/initial_weights.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/layers/model.h"

namespace trainctl {

void initialize_weights(const ProgramSpec& spec, std::uint64_t seed, const std::vector<NamedTensor>& weights) {
  Reader reader;
  const Graph graph = build_model(*spec.model, {.inputs = spec.inputs, .seed = seed}, reader).graph;
  reader.throw_if_failed();
  std::map<std::string, float*> memory;
  for (const NamedTensor& tensor : weights) memory[tensor.name] = tensor.view.as<float>();
  for (const GraphParameter& parameter : graph.parameters) {
    const Tensor& tensor = graph.tensor(parameter.tensor);
    initialize(parameter, tensor, seed, memory.at(tensor.name));
  }
  for (const GraphStatistic& statistic : graph.statistics) {
    const Tensor& tensor = graph.tensor(statistic.moving);
    std::fill_n(memory.at(tensor.name), tensor.type.shape.count(), statistic.initial);
  }
}

}  // namespace trainctl
