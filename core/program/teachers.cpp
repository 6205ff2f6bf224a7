// Finds the parameters that teachers follow.
#include "core/program/teachers.h"

#include <map>
#include <set>

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
  std::set<TensorId> is_followed, vectors;  // vectors: of spectral norms, which no teacher needs
  for (const GraphSpectralNorm& norm : graph.spectral_norms) vectors.insert(norm.vector);
  for (const ProgramSpec::Teacher& teacher : spec.teachers) {
    const auto refuse = [&](const std::string& what) {
      reader.error(teacher.location, format("teacher '{}': {}", teacher.name, what));
    };
    if (teacher.name.empty() || teacher.of.empty() || teacher.of.starts_with(teacher.name)) {
      return refuse(
          format("the names of its layers and of those that it follows, which begin with '{}', cannot be told "
                 "apart: rename one of them",
                 teacher.of));
    }
    bool found = false;
    for (GraphParameter& parameter : graph.parameters) {
      const Tensor& tensor = graph.tensor(parameter.tensor);
      const std::string followed = followed_by(teacher, tensor.name);
      if (followed.empty() || vectors.contains(parameter.tensor)) continue;
      found = true;
      if (!parameter.trainable) {
        return refuse(format("'{}' is frozen or follows another layer already: name it once", tensor.name));
      }
      const auto of = parameters.find(followed);
      if (of == parameters.end() || !of->second->trainable ||
          graph.tensor(of->second->tensor).type.shape != tensor.type.shape) {
        return refuse(format("'{}' follows '{}', but no parameter of this name and the shape {} trains", tensor.name,
                             followed, to_string(tensor.type.shape)));
      }
      if (is_followed.contains(parameter.tensor)) {
        return refuse(format("'{}' is followed by another teacher, and cannot follow '{}'", tensor.name, followed));
      }
      is_followed.insert(of->second->tensor);
      parameter.trainable = false;
      network.teachers.push_back({parameter.tensor, of->second->tensor, static_cast<float>(teacher.momentum)});
    }
    for (LayerLine& layer : network.layers) {
      if (layer.name.starts_with(teacher.name)) layer.trainable = 0;
    }
    if (!found) refuse(format("no layer with weights has a name that begins with '{}'", teacher.name));
  }
}

}  // namespace trainctl
