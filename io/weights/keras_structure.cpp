// Matches layers with groups by the kinds and shapes of their weights.
#include "io/weights/keras_structure.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/base/format.h"
#include "io/weights/keras_layers.h"

namespace trainctl {
namespace {

// The weights of a layer by name, and the shapes of a group's weights by number.
using LayerTensors = std::map<std::string, const WantedTensor*>;
using GroupShapes = std::vector<Shape>;

// Returns "dense" for "layers/functional/layers/dense_12".
std::string class_of(const std::string& group) {
  std::string name = group.substr(group.rfind('/') + 1);
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits > 0 && digits < name.size() && name[digits - 1] == '_') name.resize(digits - 1);
  return name;
}

bool is_layer(const LayerTensors& layer, const std::string& group, const GroupShapes& shapes) {
  const std::vector<std::string> leaves = weights_of_class(class_of(group));
  std::size_t found = 0;
  for (const std::string& leaf : leaves) {
    const auto tensor = layer.find(leaf);
    if (tensor == layer.end()) continue;
    if (found == shapes.size() || !fits(*tensor->second, shapes[found], WeightsLayout::keras)) return false;
    ++found;
  }
  const std::size_t rows = layer.count("recurrent_bias");  // second row of a gru's bias in the file
  return found > 0 && found == shapes.size() && found + rows == layer.size();
}

}  // namespace

bool is_counted(const FileTensor& tensor) {
  return tensor.name.starts_with("layers/") || tensor.name.starts_with("_layer_checkpoint_dependencies/");
}

std::vector<NameRule> rules_by_structure(const std::vector<WantedTensor>& wanted,
                                         const std::vector<FileTensor>& stored) {
  std::map<std::string, LayerTensors> layers;
  std::map<std::string, GroupShapes> groups;
  for (const WantedTensor& tensor : wanted) layers[tensor.layer()][tensor.leaf()] = &tensor;
  // The order of names is that of numbers, since no layer has ten weights.
  for (const FileTensor& tensor : stored) {
    if (!is_counted(tensor)) return {};
    groups[tensor.name.substr(0, tensor.name.rfind('/'))].push_back(tensor.shape);
  }
  if (layers.size() != groups.size()) return {};
  std::map<std::string, std::string> layer_of;
  std::vector<NameRule> rules;
  for (const auto& [layer, tensors] : layers) {
    std::string fitting;
    for (const auto& [group, shapes] : groups) {
      if (!is_layer(tensors, group, shapes)) continue;
      if (!fitting.empty()) return {};
      fitting = group;
    }
    if (fitting.empty() || !layer_of.emplace(fitting, layer).second) return {};
    rules.emplace_back(format("^{}$ -> {}", layer, fitting));
  }
  return rules;
}

}  // namespace trainctl
