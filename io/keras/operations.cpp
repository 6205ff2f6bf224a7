// Translates each operation.
#include "io/keras/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "core/base/format.h"
#include "core/base/json.h"
#include "io/keras/values.h"
#include "io/weights/keras_layers.h"

namespace trainctl {
namespace {

// Returns "add" for "math.add" of Keras 2 and "Add" of Keras 3.
std::string operation_name(const Json& layer) {
  std::string name = layer_class(layer);
  if (name == "TFOpLambda") name = layer.at("config").value("function", "");
  name = snake_case(name.substr(name.rfind('.') + 1));
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> same{{{"sub", "subtract"},
                                                                                      {"mul", "multiply"},
                                                                                      {"true_divide", "divide"},
                                                                                      {"truediv", "divide"},
                                                                                      {"div", "divide"},
                                                                                      {"swish", "silu"},
                                                                                      {"hard_silu", "hard_swish"},
                                                                                      {"neg", "negative"},
                                                                                      {"re_lu", "relu"}}};
  const auto found = std::find_if(same.begin(), same.end(), [&](const auto& pair) { return pair.first == name; });
  return found == same.end() ? name : std::string(found->second);
}

TranslatedLayer rescaled(double scale, double offset) {
  TranslatedLayer layer{"rescaling", map_node()};
  append(layer.options, "scale", plain_node(scale));
  if (offset != 0) append(layer.options, "offset", plain_node(offset));
  return layer;
}

// Translates an operation on a tensor and a number.
std::optional<TranslatedLayer> with_number(const std::string& name, double number, bool number_first) {
  if (name == "add") return rescaled(1, number);
  if (name == "subtract") return number_first ? rescaled(-1, number) : rescaled(1, -number);
  if (name == "multiply") return rescaled(number, 0);
  if (name == "divide" && !number_first && number != 0) return rescaled(1 / number, 0);
  return std::nullopt;
}

// Translates an operation on one tensor.
std::optional<TranslatedLayer> of_tensor(const std::string& name) {
  static const std::set<std::string> functions{
      "relu",     "relu6",    "sigmoid",     "tanh", "silu",        "hard_swish",  "hard_sigmoid",   "hard_tanh",
      "softplus", "softsign", "log_sigmoid", "selu", "tanh_shrink", "sparse_plus", "sparse_sigmoid", "mish"};
  if (name == "negative") return rescaled(-1, 0);
  if (!functions.contains(name)) return std::nullopt;
  TranslatedLayer layer{"activation", map_node()};
  append(layer.options, "activation", scalar_node(name));
  return layer;
}

// Translates an operation on two tensors.
std::optional<TranslatedLayer> of_tensors(const std::string& name) {
  static const std::set<std::string> merging{"add", "subtract", "multiply", "maximum", "minimum"};
  if (!merging.contains(name)) return std::nullopt;
  return TranslatedLayer{name, map_node()};
}

// Whether the operation has options that change its result.
bool has_options(const Json& config) {
  static const std::set<std::string> neutral{"name", "trainable", "dtype", "function"};
  return std::any_of(config.items().begin(), config.items().end(),
                     [](const auto& item) { return !neutral.contains(item.key()) && !item.value().is_null(); });
}

}  // namespace

bool is_operation(const Json& layer) {
  if (layer_class(layer) == "TFOpLambda") return true;
  const auto module = layer.find("module");
  if (module != layer.end())
    return module->is_string() && module->get<std::string>().find(".ops.") != std::string::npos;
  const Json& config = layer.at("config");  // .h5 files have no module; operations have no such options
  return config.is_object() && !config.contains("trainable") && !config.contains("dtype") && config.size() == 1;
}

Translation translate_operation(const LayerUse& use, const std::string& path, Reader& reader) {
  const Json& layer = *use.layer;
  const std::string name = operation_name(layer);
  const std::vector<std::optional<double>>& operands = use.operands;
  const auto number = std::find_if(operands.begin(), operands.end(), [](const auto& one) { return one.has_value(); });
  std::optional<TranslatedLayer> own;
  if (use.other_argument.empty() && !has_options(layer.at("config"))) {
    if (operands.size() == 2 && use.from.size() == 1 && number != operands.end()) {
      own = with_number(name, **number, number == operands.begin());
    } else if (operands.size() == 2 && use.from.size() == 2) {
      own = of_tensors(name);
    } else if (operands.size() == 1 && use.from.size() == 1) {
      own = of_tensor(name);
    }
  }
  if (own) return {{std::move(*own)}, {}, true};
  const std::string function = layer_class(layer) == "TFOpLambda" ? layer.at("config").value("function", "") : name;
  std::string what = format("it computes {}", function);
  if (number != operands.end()) what += format(" with the number {}", **number);
  if (!use.other_argument.empty()) what += format(" with the argument {}", use.other_argument);
  reader.error({path},
               format("{} '{}': {}, which has no counterpart in trainctl; a Keras layer that computes the same, such "
                      "as Rescaling or Activation, can be imported",
                      layer_class(layer), use.name, what));
  return {};
}

}  // namespace trainctl
