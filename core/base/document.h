// The tree of values that a config file is parsed into before it becomes a RunSpec; each value has its file, line and
// column.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

// A value of a document. Scalars keep their text; whether it is a number is decided by the key that reads it.
struct Node {
  enum class Kind { null, scalar, sequence, map };

  struct Entry;

  Kind kind = Kind::null;
  std::string text;            // scalar only, with ${VAR} replaced
  bool quoted = false;         // scalar only: '5' in quotes is a string, never a number
  std::vector<Node> items;     // sequence only
  std::vector<Entry> entries;  // map only, in the order of the file; repeated keys are kept (the reader reports them)
  SourceLocation location;     // location of the value's first character
  std::string base_directory;  // the folder that relative paths in this value refer to

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_map() const { return kind == Kind::map; }

  // The value of a key, the first one if the key is repeated; nullptr if this node is not a map or does not have the
  // key.
  const Node* find(std::string_view key) const;
};

struct Node::Entry {
  std::string key;
  SourceLocation key_location;
  Node value;
};

// How large a document is.
struct Extent {
  std::size_t values = 0;  // number of maps, lists and scalars
  std::size_t bytes = 0;   // total length of the scalars and keys
  std::size_t levels = 0;  // depth of nesting
};
Extent extent_of(const Node& node);

// Describes a value for a message: "a map", "a list", "'abc'", "nothing" (null).
std::string describe(const Node& node);

// Nodes without a location, for documents that the program writes.
Node scalar_node(std::string text, bool quoted = false);
Node sequence_node(std::vector<Node> items = {});
Node map_node();
void append(Node& map, std::string key, Node value);

// The value as one line of YAML, with quotes where YAML needs them: `[1, 2]`, `{name: adam, beta_1: 0.9}`. A literal
// "${" is escaped as "$${".
std::string flow_text(const Node& node);
// A key as YAML, with quotes if YAML needs them.
std::string key_text(const std::string& key);

// One line for each difference between two values: "train.epochs: 5 before, 6 now". Locations are not compared. The
// result is empty if the values are equal.
std::vector<std::string> differences(const Node& before, const Node& now);

}  // namespace trainctl
