// Ordered<T>: a map from names to values that keeps the order of the config.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/spec/values.h"

namespace trainctl {

template <class T>
struct Ordered {
  struct Item {
    std::string name;
    SourceLocation location;  // of the name
    T value;
  };
  std::vector<Item> items;

  bool empty() const { return items.empty(); }
};

template <class T>
struct Value<Ordered<T>> {
  static TypeInfo type() { return Value<std::map<std::string, T>>::type(); }
  static bool read(const Node& node, Reader& reader, Ordered<T>& value) {
    value.items.clear();
    if (!node.is_map()) return reader.expected(node, type()), false;
    bool good = keys_are_unique(node, reader);
    for (const Node::Entry& entry : node.entries) {
      const ReadingContext context(reader, entry.key);
      value.items.push_back({entry.key, entry.key_location, {}});
      good &= Value<T>::read(entry.value, reader, value.items.back().value);
    }
    return good;
  }
  static Node write(const Ordered<T>& value) {
    Node node = map_node();
    for (const auto& item : value.items) append(node, item.name, Value<T>::write(item.value));
    return node;
  }
};

}  // namespace trainctl
