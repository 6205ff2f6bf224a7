// A reference to another layer's output by the layer's name: `from: c1`.
#pragma once

#include <string>
#include <vector>

#include "core/spec/values.h"

namespace trainctl {

struct Reference {
  std::string name;  // empty: not given
  SourceLocation location;
};

template <>
struct Value<Reference> {
  static TypeInfo type() { return Value<std::string>::type(); }
  static bool read(const Node& node, Reader& reader, Reference& value) {
    value.location = node.location;
    return Value<std::string>::read(node, reader, value.name);
  }
  static Node write(const Reference& value) {
    return value.name.empty() ? Node{} : Value<std::string>::write(value.name);
  }
};

// References to one or several layers: `from: c1` or `from: [c1, c2]`.
struct References {
  std::vector<Reference> list;
};

template <>
struct Value<References> {
  static TypeInfo type() {
    TypeInfo info = Value<std::vector<Reference>>::type();
    info.single_item_allowed = true;
    return info;
  }
  static bool read(const Node& node, Reader& reader, References& value) {
    if (node.is_sequence()) return Value<std::vector<Reference>>::read(node, reader, value.list);
    value.list.resize(1);
    return Value<Reference>::read(node, reader, value.list.front());
  }
  static Node write(const References& value) { return Value<std::vector<Reference>>::write(value.list); }
};

}  // namespace trainctl
