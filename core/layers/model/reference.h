// A reference to another layer's output by the layer's name: `from: c1`.
#pragma once

#include <string>

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

}  // namespace trainctl
