// Computes the initial values in the same way on every rank.
#include "parallel/trainer/initial_weights.h"

#include <algorithm>

#include "core/exec/interfaces/snapshot.h"
#include "core/graph/passes/initialize.h"
#include "core/layers/model/model.h"
#include "core/program/network.h"
#include "core/program/teachers.h"

namespace trainctl {

namespace {

// Writes the rank's shard of a tensor; `write` computes all values of the tensor into the given memory.
template <class Write>
void write_shard(const NamedTensor& shard, std::vector<float>& memory, const Write& write) {
  if (shard.extent.is_whole()) return write(shard.view.as<float>());
  memory.resize(static_cast<std::size_t>(shard.shape.count()));
  write(memory.data());
  const View whole{memory.data(), DType::float32, shard.shape.count()};
  copy_common(shard.shape, TensorExtent(), whole, shard.extent, shard.view);
}

// The parameter whose initial values a parameter has: that which it follows if it is a teacher's, else itself.
const GraphParameter& source_of(const ProgramSpec& spec, const Graph& graph, const GraphParameter& parameter) {
  for (const ProgramSpec::Teacher& teacher : spec.teachers) {
    const std::string followed = followed_by(teacher, graph.tensor(parameter.tensor).name);
    const auto named = [&](const GraphParameter& other) { return graph.tensor(other.tensor).name == followed; };
    const auto found = std::ranges::find_if(graph.parameters, named);
    if (!followed.empty() && found != graph.parameters.end()) return *found;
  }
  return parameter;
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
    const GraphParameter& source = source_of(spec, graph, parameter);
    write_shard(*found->second, memory,
                [&](float* values) { initialize(source, graph.tensor(source.tensor), seed, values); });
  }
  for (const GraphStatistic& statistic : graph.statistics) {
    const auto found = held.find(graph.tensor(statistic.moving).name);
    if (found == held.end()) continue;
    std::fill_n(found->second->view.as<float>(), found->second->view.count, statistic.initial);
  }
}

}  // namespace trainctl
