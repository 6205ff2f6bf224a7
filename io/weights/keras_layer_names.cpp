// Finds the names of tensors in .h5 files: the group of a layer, "dense_1", lists the names of its weights,
// "dense_1/kernel:0".
//
// The names before a weight's own name are the scopes in which TensorFlow created it: "dense_1_1", "model/dense", or
// another layer's name. Like Keras, this code uses only the group and the order of its weights.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "io/weights/keras_layers.h"
#include "io/weights/keras_names.h"

namespace trainctl {
namespace {

// The name of a data set in a group: all scopes in which it was created, the last scope, and its own name.
struct ScopedName {
  std::string scope, inner, leaf;
};

// Whether the scope is the cell of a recurrent layer, such as "lstm_cell_3".
bool is_cell(std::string_view scope) {
  const std::size_t digits = scope.find_last_not_of("0123456789") + 1;
  const bool is_numbered = digits > 0 && digits < scope.size() && scope[digits - 1] == '_';
  return (is_numbered ? scope.substr(0, digits - 1) : scope).ends_with("_cell");
}

ScopedName scoped_name(std::string_view path) {
  ScopedName name;
  for (std::size_t slash; (slash = path.find('/')) != std::string_view::npos; path.remove_prefix(slash + 1)) {
    const std::string scope(path.substr(0, slash));
    name.scope += scope + "/";
    if (!is_cell(scope)) name.inner = scope;
  }
  name.leaf = path.substr(0, path.rfind(':'));
  return name;
}

// Whether a weight's name is the expected name or an unknown name, which is accepted.
bool agrees(const std::string& stored, const std::string& expected) {
  static constexpr std::array known{"kernel",
                                    "depthwise_kernel",
                                    "pointwise_kernel",
                                    "recurrent_kernel",
                                    "bias",
                                    "embeddings",
                                    "gamma",
                                    "beta",
                                    "alpha",
                                    "moving_mean",
                                    "moving_variance",
                                    "mean",
                                    "variance"};
  const std::string leaf = expected.substr(expected.rfind('/') + 1);
  if (leaf == "depthwise_kernel" && stored == "kernel") return true;
  return stored == leaf || std::find(known.begin(), known.end(), stored) == known.end();
}

class LayerNames {
 public:
  LayerNames(const Hdf5File& file, std::string shown) : file_(file), shown_(std::move(shown)) {
    const auto& sets = file.data_sets();
    for (std::size_t i = 0; i < sets.size(); ++i) numbers_[sets[i].path] = i;
    const bool is_model = std::any_of(sets.begin(), sets.end(), [](auto& s) { return s.path.starts_with(model); });
    root_ = is_model ? model : "";
    names_.resize(sets.size());
  }

  KerasNames run(const Json& network) {
    std::map<std::string, const Json*> layers;
    if (!network.is_null() && is_keras_network(network.value("class_name", ""))) {
      for (const Json* layer : layers_of(network)) layers[layer_name(*layer)] = layer;
    }
    const bool is_keras3 = network.is_object() && network.value("keras_version", "").starts_with("3");
    const std::string attributes_group = root_.substr(0, root_.find('/'));
    for (const std::string& group : file_.text_list(attributes_group, "layer_names")) {
      const std::vector<std::string> weights = file_.text_list(root_ + group, "weight_names");
      const auto layer = layers.find(group);
      if (layer == layers.end() || !by_order(*layer->second, group, weights, is_keras3)) by_scope(group, weights);
    }
    name_unlisted();
    return std::move(names_);
  }

 private:
  static constexpr const char* model = "model_weights/";

  // Names the weights of a group by their order; returns false if the classes of some layers are unknown.
  bool by_order(const Json& layer, const std::string& group, const std::vector<std::string>& weights, bool is_keras3) {
    const auto expected = variables_in_h5(layer, is_keras3);
    if (!expected) return false;
    if (expected->size() != weights.size()) {
      throw_mismatch(group, format("it has {}, but {} '{}' has {}", counted(weights.size(), "weight"),
                                   layer_class(layer), group, expected->size()));
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const LayerVariable& variable = (*expected)[i];
      if (!agrees(scoped_name(weights[i]).leaf, variable.leaf)) {
        throw_mismatch(group, format("it has '{}' instead of '{}'", weights[i], variable.name()));
      }
      const auto number = numbers_.find(root_ + group + "/" + weights[i]);
      if (number == numbers_.end()) continue;  // a counter, which is not a weight
      // The weights of a layer that is in several groups are the same in all of them.
      const std::string key = variable.shared.empty() ? "" : variable.shared + "/" + variable.leaf;
      const auto [first, is_new] = shared_.try_emplace(key, number->second);
      named_.insert(number->second);
      std::vector<std::string>& names = names_[key.empty() || is_new ? number->second : first->second];
      names.push_back(variable.name());
      constexpr std::string_view inner = "layer/";  // of a wrapper, whose own name may be used as well
      if (variable.leaf.starts_with(inner)) names.push_back(variable.layer + "/" + variable.leaf.substr(inner.size()));
    }
    return true;
  }

  // Names the weights of a group by their scopes. If all were created in one scope, the group is a layer, or a network
  // with one layer that has weights.
  void by_scope(const std::string& group, const std::vector<std::string>& weights) {
    std::set<std::string> scopes;
    for (const std::string& weight : weights) scopes.insert(scoped_name(weight).scope);
    for (const std::string& weight : weights) {
      const ScopedName name = scoped_name(weight);
      const std::string nested = group + "/" + (name.inner.empty() ? "" : name.inner + "/") + name.leaf;
      if (scopes.size() > 1) {
        set(group, weight, {nested});
      } else {
        set(group, weight, {group + "/" + name.leaf, nested});
      }
    }
  }

  // Names data sets that are in no list, as in files of other programs.
  void name_unlisted() {
    std::map<std::string, std::vector<std::string>> groups;
    for (const auto& [path, number] : numbers_) {
      if (!path.starts_with(root_) || named_.contains(number) || path.starts_with("optimizer_weights/")) continue;
      const std::string own = path.substr(root_.size());
      const std::size_t slash = own.find('/');
      if (slash == std::string::npos) {
        names_[number] = {own};
      } else {
        groups[own.substr(0, slash)].push_back(own.substr(slash + 1));
      }
    }
    for (const auto& [group, weights] : groups) by_scope(group, weights);
  }

  void set(const std::string& group, const std::string& weight, std::vector<std::string> names) {
    const auto found = numbers_.find(root_ + group + "/" + weight);
    if (found == numbers_.end()) return;  // a counter, which is not a weight
    named_.insert(found->second);
    names_[found->second] = std::move(names);
  }

  [[noreturn]] void throw_mismatch(const std::string& group, const std::string& what) const {
    throw Error(
        ErrorKind::data, SourceLocation{shown_},
        format("the weights in the group '{}' are not those of the layer in the file's network: {}", group, what),
        "save the network again, with model.save(\"network.keras\")");
  }

  const Hdf5File& file_;
  const std::string shown_;
  std::string root_;                            // path of the layers' groups
  std::map<std::string, std::size_t> numbers_;  // key: path of a data set; value: its number
  std::map<std::string, std::size_t> shared_;   // key: weight that several groups have; value: its first data set
  std::set<std::size_t> named_;
  KerasNames names_;
};

}  // namespace

KerasNames names_of_layers(const Hdf5File& file, const Json& network, const std::string& shown) {
  return LayerNames(file, shown).run(network);
}

}  // namespace trainctl
