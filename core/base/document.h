// A tree of values that know their file, line and column: the form of a config file before it becomes a RunSpec.
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
  std::string text;            // scalar only, after ${VAR} was replaced
  bool quoted = false;         // scalar only: '5' in quotes is a string, never a number
  std::vector<Node> items;     // sequence only
  std::vector<Entry> entries;  // map only, in the order of the file; repeated keys stay (the reader reports them)
  SourceLocation location;     // of the value's first character
  std::string base_directory;  // the folder in which a relative path in this value starts

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_map() const { return kind == Kind::map; }

  // The value under a key, the first one where the key is repeated; null where this node is no map or has no such key.
  const Node* find(std::string_view key) const;
};

struct Node::Entry {
  std::string key;
  SourceLocation key_location;
  Node value;
};

// How large a document is.
struct Extent {
  std::size_t values = 0;  // maps, lists and scalars
  std::size_t bytes = 0;   // of the texts of scalars and keys
  std::size_t levels = 0;  // of nesting
};
Extent extent_of(const Node& node);

// Names a value in a message: "a map", "a list", "'abc'", "nothing".
std::string describe(const Node& node);

// Nodes without a place, for documents that the program writes.
Node scalar_node(std::string text, bool quoted = false);
Node sequence_node(std::vector<Node> items = {});
Node map_node();
void append(Node& map, std::string key, Node value);

// One line of YAML: `[1, 2]`, `{name: adam, beta_1: 0.9}`, quoted where it must be; a literal "${" is escaped as "$${".
std::string flow_text(const Node& node);
// A key as YAML, quoted where it must be.
std::string key_text(const std::string& key);

// One line for each difference between two values: "train.epochs: 5 before, 6 now". Places are not compared. Empty
// where the values are equal.
std::vector<std::string> differences(const Node& before, const Node& now);

}  // namespace trainctl
