// ByName<T>: a value for a single input or output, or one value for each by name, as Keras takes losses: `loss: huber`,
// or `loss: {digit: sparse_categorical_crossentropy, size: huber}`. T must not be a map type.
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

template <class T>
struct ByName {
  struct Entry {
    std::string name;         // empty: the value was given without a name
    SourceLocation location;  // of the name or, without a name, of the value
    T value;
  };
  std::vector<Entry> entries;  // empty: not given; otherwise one without a name, or all with names

  bool empty() const { return entries.empty(); }
  void add(const std::string& name, T value) {
    Entry& entry = entries.emplace_back();
    entry.name = name;
    entry.value = std::move(value);
  }
  bool named() const { return !entries.empty() && !entries.front().name.empty(); }
  // The value under that name, or the one given without a name; null where there is neither.
  const T* find(std::string_view name) const {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& entry) { return entry.name.empty() || entry.name == name; });
    return found == entries.end() ? nullptr : &found->value;
  }
  // The value of find(), or T's default where there is none.
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
    const bool choice = Value<T>::type().kind == TypeInfo::Kind::choice;  // {name: sgd, momentum: 0.9} is one
    if (!node.is_map() || node.entries.empty() || (choice && node.find("name"))) {
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

// Whether values must be given for all names, or may be given for some.
enum class Coverage { all, some };

// Reports names that are not among `names`; one value for several names; with Coverage::all, names without a value; and
// any name where the model has a single one without a name ({""}). `what` is what the names name, for messages:
// "output".
template <class T>
void check_names(const ByName<T>& values, const std::vector<std::string>& names, std::string_view what,
                 Coverage coverage, Reader& reader) {
  if (values.empty()) return;
  const SourceLocation& location = values.entries.front().location;
  if (!values.named()) {
    if (names.size() == 1) return;
    reader.error(location, format("the model has several {}s: state one for each, {{{}: ..., {}: ...}}", what, names[0],
                                  names[1]));
    return;
  }
  if (names.front().empty()) {
    reader.error(location, format("'{}' names an {}, and the model names none: state the value alone, or `{}s` under "
                                  "`model`",
                                  values.entries.front().name, what, what));
    return;
  }
  for (const auto& entry : values.entries) {
    if (std::find(names.begin(), names.end(), entry.name) != names.end()) continue;
    std::string hint = suggestion(entry.name, names);
    if (hint.empty()) hint = "; there is " + join_or(names);
    reader.error(entry.location, format("the model has no {} '{}'{}", what, entry.name, hint));
  }
  for (const std::string& name : names) {
    if (coverage == Coverage::all && !values.find(name)) {
      reader.error(location, format("nothing is stated for the {} '{}'", what, name));
    }
  }
}

}  // namespace trainctl
