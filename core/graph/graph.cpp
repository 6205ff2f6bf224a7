// Appends ops and their outputs to a graph.
#include "core/graph/graph.h"

#include "core/base/format.h"

namespace trainctl {

std::vector<TensorId> Graph::add_op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                    const std::string& name, const SourceLocation& location,
                                    std::vector<std::string> suffixes) {
  const std::vector<TensorType> output_types = def->outputs(types_of(inputs, tensors));
  if (suffixes.empty()) suffixes.push_back("output");
  require(suffixes.size() == output_types.size(),
          format("{} ({}) has {} outputs, but {} names", def->kind(), name, output_types.size(), suffixes.size()));
  std::vector<TensorId> outputs;
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    Tensor output;
    output.name = name + "/" + suffixes[i];
    output.type = output_types[i];
    output.alias_of = i == 0 && def->output_is_input() ? inputs[0] : no_tensor;
    output.location = location;
    outputs.push_back(add_tensor(std::move(output)));
  }
  ops.push_back({std::move(def), std::move(inputs), outputs, name, location});
  return outputs;
}

TensorId add_sample_numbers(Graph& graph) {
  Tensor samples;
  samples.name = "samples";
  samples.type = {{graph.batch}, DType::int64};
  samples.role = Role::input;
  return graph.add_tensor(std::move(samples));
}

}  // namespace trainctl
