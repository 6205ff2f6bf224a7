// Reads the calls of layers.
#include "io/keras/calls.h"

#include <utility>

#include "core/base/json.h"
#include "io/keras/values.h"

namespace trainctl {
namespace {

LayerOutput output_of(const Json& history) {
  return {history.at(0).get<std::string>(), static_cast<std::size_t>(whole_number(history.at(1))),
          static_cast<std::size_t>(whole_number(history.at(2)))};
}

// Keras 3: tensors anywhere among the positional arguments, or `inputs` by name.
void collect(const Json& value, CallArguments& arguments) {
  if (value.is_array()) {
    for (const Json& item : value) collect(item, arguments);
  } else if (value.is_object() && value.value("class_name", "") == "__keras_tensor__") {
    arguments.tensors.push_back(output_of(value.at("config").at("keras_history")));
  } else if (value.is_object() && value.value("class_name", "") == "__tuple__") {
    collect(value.at("items"), arguments);
  } else if (!value.is_null()) {
    arguments.other = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

// `training=False` is what evaluation does anyway.
void look_at_named(const Json& named, CallArguments& arguments) {
  for (const auto& [key, value] : named.items()) {
    if (key == "inputs") {
      collect(value, arguments);
    } else if (!value.is_null() && !(key == "training" && value == false)) {
      arguments.other = key;
    }
  }
}

}  // namespace

CallArguments arguments_of(const Json& node) {
  CallArguments arguments;
  if (node.is_object()) {
    collect(node.at("args"), arguments);
    look_at_named(node.at("kwargs"), arguments);
    return arguments;
  }
  for (const Json& tensor : node) {  // Keras 2: a list of [layer, node, output, named arguments]
    arguments.tensors.push_back(output_of(tensor));
    if (tensor.size() > 3) look_at_named(tensor.at(3), arguments);
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
