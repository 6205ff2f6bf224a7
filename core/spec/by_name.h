// ByName<T>: one value without a name, or a value for each input or output by name, like the losses in Keras: `loss:
// huber`, or `loss: {digit: sparse_categorical_crossentropy, size: huber}`. T must not be a map type.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "core/spec/suggestion.h"
#include "core/spec/values.h"

namespace trainctl {

// Whether a map is one choice, such as {name: huber, delta: 2} or {expression: x - y}, not a choice for each of several
// names, such as {expression: huber}.
inline bool is_one_choice(const ChoiceTable& table, const Node& map) {
  if (map.find("name") != nullptr) return true;
  const Section* known = table.known_by_key(map);
  return known != nullptr && table.find(map.find(known->name)->text) == nullptr;
}

template <class T>
struct ByName {
  struct Entry {
    std::string name;         // empty: the value was given without a name
    SourceLocation location;  // location of the name or, without a name, of the value
    T value;
  };
  std::vector<Entry> entries;  // empty: not set; otherwise one entry without a name, or entries with names

  bool empty() const { return entries.empty(); }
  void add(const std::string& name, T value) {
    Entry& entry = entries.emplace_back();
    entry.name = name;
    entry.value = std::move(value);
  }
  bool named() const { return !entries.empty() && !entries.front().name.empty(); }
  // The value with that name, or the value without a name; nullptr if there is neither.
  const T* find(std::string_view name) const {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& entry) { return entry.name.empty() || entry.name == name; });
    return found == entries.end() ? nullptr : &found->value;
  }
  // The value that find() returns, or T's default if there is none.
  const T& of(std::string_view name) const {
    static const T none{};
    const T* found = find(name);
    return found ? *found : none;
  }
};

template <class T>
struct Value<ByName<T>> {
  static TypeInfo type() {
    TypeInfo info = Value<T>::type();
    info.by_name = true;
    return info;
  }
  static bool read(const Node& node, Reader& reader, ByName<T>& value) {
    value.entries.clear();
    // For a choice, a map with the key `name` is one value: {name: sgd, momentum: 0.9}. So is {expression: x - y}.
    const TypeInfo type = Value<T>::type();
    const bool is_choice = type.kind == TypeInfo::Kind::choice;
    if (!node.is_map() || node.entries.empty() || (is_choice && is_one_choice(type.table(), node))) {
      value.entries.push_back({"", node.location, {}});
      return Value<T>::read(node, reader, value.entries.back().value);
    }
    bool good = keys_are_unique(node, reader);
    for (const Node::Entry& entry : node.entries) {
      const ReadingContext context(reader, entry.key);
      value.entries.push_back({entry.key, entry.key_location, {}});
      good &= Value<T>::read(entry.value, reader, value.entries.back().value);
    }
    return good;
  }
  static Node write(const ByName<T>& value) {
    if (!value.named()) return Value<T>::write(value.of(""));
    Node map = map_node();
    for (const auto& entry : value.entries) append(map, entry.name, Value<T>::write(entry.value));
    return map;
  }
};

// Whether all names need a value.
enum class Coverage { all, some };

// Reports `names` without a value, if any value is set.
template <class T>
void check_covers(const ByName<T>& values, const std::vector<std::string>& names, std::string_view what,
                  Reader& reader) {
  for (const std::string& name : names) {
    if (values.empty() || values.find(name)) continue;
    reader.error(values.entries.front().location, format("no value is set for the {} '{}'", what, name));
  }
}

// Reports entries with names that are not among `names`, a value without a name if there are several names, and with
// Coverage::all names without a value. `names` is {""} if the model's only input or output has no name; then any entry
// with a name is reported. `what` is the noun for messages: "input" or "output".
template <class T>
void check_names(const ByName<T>& values, const std::vector<std::string>& names, std::string_view what,
                 Coverage coverage, Reader& reader) {
  if (values.empty()) return;
  const SourceLocation& location = values.entries.front().location;
  if (!values.named()) {
    if (names.size() == 1) return;
    reader.error(location, format("the model has several {}s: set one value for each, {{{}: ..., {}: ...}}", what,
                                  names[0], names[1]));
    return;
  }
  if (names.front().empty()) {
    reader.error(location,
                 format("'{}' names an {}, but the model's {}s have no names: write the value without a name, or set "
                        "`{}s` under `model`",
                        values.entries.front().name, what, what, what));
    return;
  }
  for (const auto& entry : values.entries) {
    if (std::find(names.begin(), names.end(), entry.name) != names.end()) continue;
    std::string hint = suggestion(entry.name, names);
    if (hint.empty()) hint = "; there is " + join_or(names);
    reader.error(entry.location, format("the model has no {} '{}'{}", what, entry.name, hint));
  }
  if (coverage == Coverage::all) check_covers(values, names, what, reader);
}

}  // namespace trainctl
