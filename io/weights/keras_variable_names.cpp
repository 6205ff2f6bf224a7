// Finds the names of tensors in .keras and .weights.h5 files, which have paths such as "layers/dense_1/vars/0".
//
// A group has the name of its layer's class and a number that counts the layers of this class in their container. Keras
// 3.6 and later add the layer's own name as an attribute; in earlier versions the layer of a group follows only from
// the order of layers in the network's JSON.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "io/weights/keras_layers.h"
#include "io/weights/keras_names.h"

namespace trainctl {
namespace {

// The components of a data set's path: "layers/functional/layers/lstm", "cell", "0".
struct VariablePath {
  std::string group;  // group of the layer
  std::string inner;  // the inner layer with the variable, "forward_layer/", or ""; cells are left out
  std::string number;
};

constexpr std::string_view containers[] = {"layers", "_layer_checkpoint_dependencies"};

bool is_container(std::string_view name) {
  return std::find(std::begin(containers), std::end(containers), name) != std::end(containers);
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The name that Keras gives to a layer by the attribute that holds it: "query" for "_query_dense" of an attention
// layer, and the attribute without its underscores for other layers.
std::string name_by_attribute(std::string_view attribute) {
  static constexpr std::pair<std::string_view, std::string_view> projections[] = {
      {"query_dense", "query"}, {"key_dense", "key"}, {"value_dense", "value"}, {"output_dense", "attention_output"}};
  attribute.remove_prefix(std::min(attribute.find_first_not_of('_'), attribute.size()));
  const auto found = std::ranges::find(projections, attribute, [](const auto& pair) { return pair.first; });
  return std::string(found == std::end(projections) ? attribute : found->second);
}

// The name of a layer that is an attribute of another layer: the name in the file, unless the attribute is the role of
// the layer in a recurrent layer or a wrapper. Files before Keras 3.6 have no names.
std::string inner_name(const Hdf5File& file, const std::string& group, const std::string& attribute) {
  static constexpr std::string_view roles[] = {"forward_layer", "backward_layer", "layer"};
  if (attribute == "cell") return "";
  if (std::find(std::begin(roles), std::end(roles), attribute) != std::end(roles)) return attribute + "/";
  return file.text_attribute(group + "/vars", "name").value_or(name_by_attribute(attribute)) + "/";
}

// In a network that subclasses Model, layers are attributes of the network: the first component is then the layer's
// group.
VariablePath variable_path(const Hdf5File& file, const std::string& path) {
  const std::vector<std::string> parts = split(path);
  VariablePath result;
  std::size_t end = parts.size() - 2;  // number of components before "vars"
  for (std::size_t i = 0; i < end; ++i) {
    const bool in_group = i == 0 || is_container(parts[i]) || is_container(parts[i - 1]);
    if (!in_group) {
      for (std::string group = result.group; i < end; ++i) {
        group += "/" + parts[i];
        result.inner += inner_name(file, group, parts[i]);
      }
      break;
    }
    result.group += (result.group.empty() ? "" : "/") + parts[i];
  }
  result.number = parts.back();
  return result;
}

// Finds the group of each layer of a network, as the version of Keras that saved it numbers them.
class Groups {
 public:
  Groups() = default;
  Groups(const Json& network, const std::string& version) {
    // Keras 2.12 and 2.13 list layers with weights twice, and count them twice. From 2.14 on, before Keras 3, a layer
    // that was saved before is not counted.
    const int major = std::atoi(version.c_str());
    const std::size_t dot = version.find('.');
    const int minor = dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
    const bool before_214 = major < 2 || (major == 2 && minor < 14);
    container_ = containers[major < 2 || (major == 2 && minor < 15) ? 1 : 0];
    counts_twice_ = before_214;
    counts_saved_ = major > 2 || before_214;
    walk(network, "", "");
  }

  struct Layer {
    std::vector<std::string> paths;  // "outer/dense"; several if the layer is in several networks
    std::optional<std::size_t> variables;
  };
  std::map<std::string, Layer> layers;  // key: name of the group

 private:
  void walk(const Json& network, const std::string& group, const std::string& location) {
    std::map<std::string, int> used;
    for (const Json* layer : layers_of(network)) {
      const std::string path = location + layer_name(*layer), kind = layer_class(*layer);
      const std::string id = shared_layer(*layer);
      const auto saved = id.empty() ? saved_.end() : saved_.find(id);
      if (saved != saved_.end() && !counts_saved_) {
        layers[saved->second].paths.push_back(path);
        continue;
      }
      const std::string name = usual_name(kind);
      int& count = used[name];
      const std::string own = group + container_ + "/" + name + (count == 0 ? "" : format("_{}", count));
      count += counts_twice_ && has_weights(*layer) ? 2 : 1;
      if (saved != saved_.end()) {
        layers[saved->second].paths.push_back(path);
        continue;
      }
      if (!id.empty()) saved_[id] = own;
      Layer& entry = layers[own];
      entry.paths.push_back(path);
      if (is_keras_network(kind)) {
        walk(*layer, own + "/", path + "/");
      } else if (const auto variables = layer_variables(*layer, path)) {
        entry.variables = static_cast<std::size_t>(
            std::count_if(variables->begin(), variables->end(), [](auto& one) { return one.leaf != "count"; }));
      }
    }
  }

  static bool has_weights(const Json& layer) {
    const auto variables = variables_in_h5(layer, false);
    return !variables || !variables->empty();
  }

  std::string container_;
  bool counts_twice_ = false, counts_saved_ = false;
  std::map<std::string, std::string> saved_;  // groups of layers that are in several networks
};

// Returns the path of a group's layer from the names in the file: "outer/dense"; empty if the file does not name its
// layers.
std::string named_path(const Hdf5File& file, const std::string& path) {
  std::string group, name;
  const std::vector<std::string> parts = split(path);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    group += (group.empty() ? "" : "/") + parts[i];
    if (is_container(parts[i])) continue;
    const auto own = file.text_attribute(group + "/vars", "name");
    if (!own) return "";
    name += (name.empty() ? "" : "/") + *own;
  }
  return name;
}

// The groups of layers SpectralNormalization. They list the kernel of their inner layer as variable 0, and vector_u, a
// row with an element for each column of the kernel, as variable 1.
std::set<std::string> groups_with_vector(const Hdf5File& file) {
  std::map<std::string, const Shape*> shapes;
  for (const Hdf5File::DataSet& set : file.data_sets()) shapes[set.path] = &set.shape;
  std::set<std::string> groups;
  for (const auto& [path, shape] : shapes) {
    const std::string inner = "/layer/vars/0";
    if (!path.ends_with(inner) || shape->rank() == 0) continue;
    const std::string group = path.substr(0, path.size() - inner.size());
    const auto kernel = shapes.find(group + "/vars/0"), vector = shapes.find(group + "/vars/1");
    if (kernel == shapes.end() || vector == shapes.end() || *kernel->second != *shape) continue;
    if (*vector->second == Shape{1, shape->back()}) groups.insert(group);
  }
  return groups;
}

[[noreturn]] void throw_mismatch(const std::string& shown, const std::string& what) {
  throw Error(
      ErrorKind::data, SourceLocation{shown},
      "the file does not name its layers, and its groups do not match the order of layers in config.json: " + what,
      "save the network with Keras 3.6 or later, which writes the layers' names, or as .h5");
}

}  // namespace

KerasNames names_of_variables(const Hdf5File& file, const Json& network, const std::string& shown) {
  const auto& data_sets = file.data_sets();
  const bool has_layers = std::any_of(data_sets.begin(), data_sets.end(),
                                      [](auto& set) { return is_container(set.path.substr(0, set.path.find('/'))); });
  const bool knows_network = !network.is_null() && is_keras_network(network.value("class_name", ""));
  const Groups groups = knows_network ? Groups(network, network.value("keras_version", "")) : Groups();
  const std::set<std::string> with_vector = groups_with_vector(file);
  KerasNames names(data_sets.size());
  bool is_named = true;
  std::map<std::string, std::size_t> found;
  for (std::size_t i = 0; i < data_sets.size(); ++i) {
    const std::string& path = data_sets[i].path;
    const std::string first = path.substr(0, path.find('/'));
    if (has_layers ? !is_container(first) : first == "optimizer" || first == "metrics") continue;
    VariablePath parsed = variable_path(file, path);
    if (with_vector.contains(path.substr(0, path.rfind("/vars/")))) {
      if (parsed.number == "0") continue;  // the inner layer's kernel, which is in the file again
      parsed.number = "vector_u";
    }
    const std::string variable = "/" + parsed.inner + parsed.number, layer_path = named_path(file, parsed.group);
    const auto layer = groups.layers.find(parsed.group);
    const auto paths = layer == groups.layers.end() ? std::vector<std::string>() : layer->second.paths;
    if (!layer_path.empty()) {
      names[i] = {layer_path + variable};
      if (std::find(paths.begin(), paths.end(), layer_path) == paths.end()) continue;
    } else {
      is_named = false;
      if (!knows_network) names[i] = {parsed.group + variable};
      if (knows_network && paths.empty()) throw_mismatch(shown, format("no layer has '{}'", parsed.group));
    }
    for (const std::string& name : paths) {
      if (name != layer_path) names[i].push_back(name + variable);
    }
    ++found[parsed.group];
  }
  if (is_named) return names;
  for (const auto& [group, layer] : groups.layers) {
    const std::size_t has = found[group];
    if (layer.variables.value_or(has) == has) continue;
    throw_mismatch(shown, format("layer '{}' has {}, but '{}' has {}", layer.paths[0],
                                 counted(*layer.variables, "weight"), group, has));
  }
  return names;
}

}  // namespace trainctl
