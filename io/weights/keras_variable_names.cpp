// Names in .keras and .weights.h5 files: "layers/dense_1/vars/0".
//
// A group is called after its layer's class, with a number that counts the layers of this class in their container, in
// the order of the container. Keras 3.6 and later add the layer's own name as an attribute; before that only the order
// of the layers in the network's JSON tells whose group it is.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/weights/keras_layers.h"
#include "io/weights/keras_names.h"

namespace trainctl {
namespace {

// A data set's path in parts: "layers/functional/layers/lstm", "cell", "0".
struct VariablePath {
  std::string group;  // of the layer
  std::string part;   // of the layer, that has the variable: "", or "forward_layer/"; the cells of layers have no name
  std::string number;
};

constexpr std::string_view containers[] = {"layers", "_layer_checkpoint_dependencies"};

bool is_container(std::string_view part) {
  return std::find(std::begin(containers), std::end(containers), part) != std::end(containers);
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

// Layers of a network that subclasses Model are its attributes: the first part is then the layer's group.
VariablePath variable_path(const std::string& path) {
  const std::vector<std::string> parts = split(path);
  VariablePath result;
  std::size_t end = parts.size() - 2;  // of the parts before "vars"
  for (std::size_t i = 0; i < end; ++i) {
    const bool in_group = i == 0 || is_container(parts[i]) || is_container(parts[i - 1]);
    if (!in_group) {
      for (; i < end; ++i) result.part += parts[i] == "cell" ? "" : parts[i] + "/";
      break;
    }
    result.group += (result.group.empty() ? "" : "/") + parts[i];
  }
  result.number = parts.back();
  return result;
}

// Which group each layer of a network has, by the version of Keras that saved it.
class Groups {
 public:
  Groups() = default;
  Groups(const Json& network, const std::string& version) {
    // 2.12 and 2.13 list a layer that has weights twice, and count it twice. From 2.14 on until Keras 3 a layer that
    // was saved before is not counted.
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
    std::vector<std::string> paths;  // "outer/dense"; several if one layer stands in several networks
    std::optional<std::size_t> variables;
  };
  std::map<std::string, Layer> layers;  // by group

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
  std::map<std::string, std::string> saved_;  // groups of layers that stand in several networks
};

// The path of a group's layer by the names that the file states: "outer/dense"; empty if it does not state them.
std::string stated_name(const Hdf5File& file, const std::string& path) {
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

[[noreturn]] void strange(const std::string& shown, const std::string& what) {
  throw Error(ErrorKind::data, SourceLocation{shown},
              "the file does not name its layers, and its groups are not those that the layers have in their order in "
              "config.json: " +
                  what,
              "save the network with Keras 3.6 or later, which writes the layers' names, or as .h5");
}

}  // namespace

KerasNames names_of_variables(const Hdf5File& file, const Json& network, const std::string& shown) {
  const auto& data_sets = file.data_sets();
  const bool has_layers = std::any_of(data_sets.begin(), data_sets.end(),
                                      [](auto& set) { return is_container(set.path.substr(0, set.path.find('/'))); });
  const bool knows_network = !network.is_null() && is_keras_network(network.value("class_name", ""));
  const Groups groups = knows_network ? Groups(network, network.value("keras_version", "")) : Groups();
  KerasNames names(data_sets.size());
  bool is_named = true;
  std::map<std::string, std::size_t> found;
  for (std::size_t i = 0; i < data_sets.size(); ++i) {
    const std::string& path = data_sets[i].path;
    const std::string first = path.substr(0, path.find('/'));
    if (has_layers ? !is_container(first) : first == "optimizer" || first == "metrics") continue;
    const VariablePath parsed = variable_path(path);
    const std::string variable = "/" + parsed.part + parsed.number, stated = stated_name(file, parsed.group);
    const auto layer = groups.layers.find(parsed.group);
    const auto paths = layer == groups.layers.end() ? std::vector<std::string>() : layer->second.paths;
    if (!stated.empty()) {
      names[i] = {stated + variable};
      if (std::find(paths.begin(), paths.end(), stated) == paths.end()) continue;
    } else {
      is_named = false;
      if (!knows_network) names[i] = {parsed.group + variable};
      if (knows_network && paths.empty()) strange(shown, format("no layer has '{}'", parsed.group));
    }
    for (const std::string& name : paths) {
      if (name != stated) names[i].push_back(name + variable);
    }
    ++found[parsed.group];
  }
  if (is_named) return names;
  for (const auto& [group, layer] : groups.layers) {
    const std::size_t has = found[group];
    if (layer.variables.value_or(has) == has) continue;
    strange(shown, format("layer '{}' has {} weights, and '{}' {}", layer.paths[0], *layer.variables, group, has));
  }
  return names;
}

}  // namespace trainctl
