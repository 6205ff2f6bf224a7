// Initial values, computed by every rank alike.
#include "parallel/trainer/initial_weights.h"

#include <algorithm>

#include "core/exec/interfaces/snapshot.h"
#include "core/graph/passes/initialize.h"
#include "core/layers/model/model.h"
#include "core/program/network.h"

namespace trainctl {

namespace {

// Writes the rank's part of a tensor, all of whose values `write` computes into the memory that it is given.
template <class Write>
void write_part(const NamedTensor& part, std::vector<float>& memory, const Write& write) {
  if (part.extent.is_whole()) return write(part.view.as<float>());
  memory.resize(static_cast<std::size_t>(part.shape.count()));
  write(memory.data());
  const View whole{memory.data(), DType::float32, part.shape.count()};
  copy_common(part.shape, TensorExtent(), whole, part.extent, part.view);
}

}  // namespace

void initialize_weights(const ProgramSpec& spec, std::uint64_t seed, const std::vector<NamedTensor>& weights) {
  Reader reader;
  const Graph graph = build_model(*spec.model, {.inputs = spec.inputs, .seed = seed}, reader).graph;
  reader.throw_if_failed();
  const auto held = by_name(weights);
  std::vector<float> memory;
  for (const GraphParameter& parameter : graph.parameters) {
    const Tensor& tensor = graph.tensor(parameter.tensor);
    const auto found = held.find(tensor.name);
    if (found == held.end()) continue;
    write_part(*found->second, memory, [&](float* values) { initialize(parameter, tensor, seed, values); });
  }
  for (const GraphStatistic& statistic : graph.statistics) {
    const auto found = held.find(graph.tensor(statistic.moving).name);
    if (found == held.end()) continue;
    std::fill_n(found->second->view.as<float>(), found->second->view.count, statistic.initial);
  }
}

}  // namespace trainctl
