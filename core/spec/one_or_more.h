// OneOrMore<T>: a list. A list of one item may be written without brackets.
#pragma once

#include <utility>
#include <vector>

#include "core/spec/values.h"

namespace trainctl {

template <class T>
struct OneOrMore {
  std::vector<T> items;

  bool empty() const { return items.empty(); }
};

template <class T>
struct Value<OneOrMore<T>> {
  static TypeInfo type() {
    TypeInfo info = Value<std::vector<T>>::type();
    info.single_item_allowed = true;
    return info;
  }
  static bool read(const Node& node, Reader& reader, OneOrMore<T>& value) {
    value.items.clear();
    if (node.is_sequence()) return Value<std::vector<T>>::read(node, reader, value.items);
    if (!node.is_scalar()) return reader.expected(node, type()), false;
    value.items.resize(1);
    return Value<T>::read(node, reader, value.items[0]);
  }
  static Node write(const OneOrMore<T>& value) {
    if (value.items.empty()) return {};
    return value.items.size() == 1 ? Value<T>::write(value.items[0]) : Value<std::vector<T>>::write(value.items);
  }
};

}  // namespace trainctl
