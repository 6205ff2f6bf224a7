// Parses the calls of layers in the formats of Keras 2 and 3.
#include "io/keras/calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/json.h"
#include "io/keras/values.h"

namespace trainctl {
namespace {

LayerOutput output_of(const Json& history) {
  return {history.at(0).get<std::string>(), static_cast<std::size_t>(whole_number(history.at(1))),
          static_cast<std::size_t>(whole_number(history.at(2)))};
}

std::string shown_argument(const Json& value) {
  std::string text = json_text(value);
  return text.size() > 100 ? text.substr(0, 100) + "..." : text;
}

void add_tensor(const LayerOutput& tensor, CallArguments& arguments) {
  arguments.tensors.push_back(tensor);
  arguments.operands.emplace_back();
}

// Whether the value is a tensor of Keras 2: ["dense", 0, 0], or such a list with the call's named arguments as fourth
// item.
bool is_history(const Json& value) {
  return value.is_array() && (value.size() == 3 || value.size() == 4) && value[0].is_string() && value[1].is_number();
}

// Adds an argument: a number, or all tensors that are nested in it.
void collect(const Json& value, CallArguments& arguments) {
  if (is_history(value)) {
    add_tensor(output_of(value), arguments);
  } else if (value.is_array()) {
    for (const Json& item : value) collect(item, arguments);
  } else if (value.is_object() && value.value("class_name", "") == "__keras_tensor__") {
    add_tensor(output_of(value.at("config").at("keras_history")), arguments);
  } else if (value.is_object() && value.value("class_name", "") == "__tuple__") {
    collect(value.at("items"), arguments);
  } else if (value.is_number()) {
    arguments.operands.emplace_back(value.get<double>());
  } else if (!value.is_null()) {
    arguments.other = shown_argument(value);
  }
}

// Adds named arguments. `training=False` is ignored, since an imported network is built for evaluation. The tensors of
// an operation, of attention or of a recurrent layer may be named, too; they are in the order of Keras' positional
// arguments. Keras 3 also saves the masks that follow from its embeddings as arguments.
void add_named(const Json& named, CallArguments& arguments) {
  static constexpr std::array operands{
      "x",     "y",     "x1",  "x2",        "inputs",   "decoder_sequence", "encoder_sequence",
      "query", "value", "key", "sequences", "sequence", "initial_state"};
  static constexpr std::array off{"training", "return_attention_scores"};
  static constexpr std::array masks{"mask", "query_mask", "value_mask", "key_mask"};
  for (const char* operand : operands) {
    if (const auto value = named.find(operand); value != named.end()) collect(*value, arguments);
  }
  for (const auto& [key, value] : named.items()) {
    const auto is_in = [&](const auto& list) { return std::find(list.begin(), list.end(), key) != list.end(); };
    if (value.is_null() || key == "name" || is_in(operands) || (value == false && is_in(off))) continue;
    if (key == "use_causal_mask" && value.is_boolean()) {
      arguments.use_causal_mask = value.get<bool>();
    } else if (is_in(masks)) {
      CallArguments mask;  // no tensor if the inputs have no masks: [null, null]
      collect(value, mask);
      arguments.masks.insert(arguments.masks.end(), mask.tensors.begin(), mask.tensors.end());
      if (mask.operands.size() != mask.tensors.size() || !mask.other.empty()) arguments.other = key;
    } else {
      arguments.other = key;
    }
  }
}

// Adds a call of Keras 2: [layer, node, output, named arguments], or a number instead of the tensor.
void collect_call(const Json& call, CallArguments& arguments) {
  if (call.at(0) == "_CONSTANT_VALUE") {
    collect(call.at(2), arguments);
  } else {
    add_tensor(output_of(call), arguments);
  }
  if (call.size() > 3) add_named(call.at(3), arguments);
}

}  // namespace

CallArguments arguments_of(const Json& node) {
  CallArguments arguments;
  if (node.is_object()) {  // Keras 3
    collect(node.at("args"), arguments);
    add_named(node.at("kwargs"), arguments);
  } else if (!node.empty() && node.at(0).is_string()) {  // an operation of Keras 2 has a single call
    collect_call(node, arguments);
  } else {
    for (const Json& call : node) collect_call(call, arguments);
  }
  return arguments;
}

std::vector<LayerOutput> outputs_in(const Json& list) {
  const bool is_one = list.is_array() && list.size() == 3 && list[0].is_string();
  if (is_one || !list.is_structured()) return {output_of(list)};
  std::vector<LayerOutput> outputs;
  for (const Json& item : list) {
    for (LayerOutput& output : outputs_in(item)) outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace trainctl
