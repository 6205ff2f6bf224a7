// Finds the parameters that teachers follow.
#include "core/program/teachers.h"

#include <map>

#include "core/base/format.h"

namespace trainctl {

std::string followed_by(const ProgramSpec::Teacher& teacher, const std::string& parameter) {
  if (!parameter.starts_with(teacher.name)) return "";
  return teacher.of + parameter.substr(teacher.name.size());
}

void follow_teachers(const ProgramSpec& spec, Network& network, Reader& reader) {
  if (spec.teachers.empty()) return;
  Graph& graph = network.graph;
  std::map<std::string, const GraphParameter*> parameters;
  for (const GraphParameter& parameter : graph.parameters) parameters[graph.tensor(parameter.tensor).name] = &parameter;
  for (const ProgramSpec::Teacher& teacher : spec.teachers) {
    bool found = false;
    for (GraphParameter& parameter : graph.parameters) {
      const Tensor& tensor = graph.tensor(parameter.tensor);
      const std::string followed = followed_by(teacher, tensor.name);
      if (followed.empty()) continue;
      found = true;
      const auto of = parameters.find(followed);
      if (of == parameters.end() || !of->second->trainable || of->second == &parameter ||
          graph.tensor(of->second->tensor).type.shape != tensor.type.shape) {
        reader.error(teacher.location,
                     format("teacher '{}': '{}' follows '{}', but no parameter of this name and the shape {} trains",
                            teacher.name, tensor.name, followed, to_string(tensor.type.shape)));
        return;
      }
      parameter.trainable = false;
      network.teachers.push_back({parameter.tensor, of->second->tensor, static_cast<float>(teacher.momentum)});
    }
    for (LayerLine& layer : network.layers) {
      if (layer.name.starts_with(teacher.name)) layer.trainable = 0;
    }
    if (found) continue;
    reader.error(teacher.location, format("teacher '{}': no layer with weights has a name that begins with '{}'",
                                          teacher.name, teacher.name));
  }
}

}  // namespace trainctl
