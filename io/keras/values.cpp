// Converts values, and leaves out options that have their defaults.
#include "io/keras/values.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

// Returns the shortest text. Keras converts many numbers to float32 before it writes them: 0.001 becomes
// 0.0010000000474974513.
std::string number_text(double value) {
  const auto rounded = static_cast<float>(value);
  return static_cast<double>(rounded) == value ? format("{}", rounded) : format("{}", value);
}

}  // namespace

std::int64_t whole_number(const Json& value) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max)) return max;
  return value.get_ref<const Json::number_integer_t&>();
}

Node plain_node(const Json& value) {
  if (value.is_object() && value.value("class_name", "") == "__tuple__") return plain_node(value.at("items"));
  if (value.is_array()) {
    Node list = sequence_node();
    for (const Json& item : value) list.items.push_back(plain_node(item));
    return list;
  }
  if (value.is_boolean()) return scalar_node(value.get<bool>() ? "true" : "false");
  if (value.is_number_float()) return scalar_node(number_text(value.get<double>()));
  if (value.is_number()) return scalar_node(json_text(value));
  return scalar_node(value.get<std::string>());
}

Node window_node(const Json& value) {
  Node node = plain_node(value);
  const auto collapse = [](Node& list) {
    const auto same = [&](const Node& item) { return item.is_scalar() && item.text == list.items[0].text; };
    if (list.is_sequence() && !list.items.empty() && std::all_of(list.items.begin(), list.items.end(), same)) {
      list = Node(list.items[0]);
    }
  };
  for (Node& item : node.items) collapse(item);
  collapse(node);
  return node;
}

std::string snake_case(const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto is = [&](int (*kind)(int), std::size_t at) { return kind(static_cast<unsigned char>(name[at])) != 0; };
    if (i > 0 && is(std::isupper, i) && is(std::islower, i - 1)) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

KerasObject keras_object(const Json& value) {
  static const Json no_options = Json::object();
  if (value.is_string()) return {snake_case(value.get<std::string>()), &no_options};
  if (!value.is_object() || !value.contains("class_name") || !value["class_name"].is_string()) return {"", &no_options};
  const auto config = value.find("config");
  const bool function = config != value.end() && config->is_string();  // a function is written as its name
  const bool options = config != value.end() && config->is_object();
  return {snake_case((function ? *config : value["class_name"]).get<std::string>()), options ? &*config : &no_options};
}

Node without_defaults(const Section& section, const Node& options) {
  Node rest = map_node();
  for (const Node::Entry& entry : options.entries) {
    const Key* key = section.find(entry.key);
    if (key != nullptr && !key->required && !key->flatten && !key->default_text.empty()) {
      Reader ignored;
      const std::shared_ptr<Options> object = section.make();
      void* memory = dynamic_cast<void*>(object.get());
      if (key->read(entry.value, ignored, memory) && flow_text(key->write(memory)) == key->default_text) continue;
    }
    rest.entries.push_back(entry);
  }
  return rest;
}

Node choice_node(const ChoiceTable& table, const std::string& name, const Node& options) {
  const Section* section = table.find(name);
  const Node rest = section != nullptr ? without_defaults(*section, options) : options;
  if (rest.entries.empty()) return scalar_node(name);
  Node node = map_node();
  append(node, "name", scalar_node(name));
  for (const Node::Entry& entry : rest.entries) append(node, entry.key, entry.value);
  return node;
}

}  // namespace trainctl
