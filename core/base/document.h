// A tree of values that know their file, line and column: what a config file is before it is a RunSpec.
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
  Place place;                 // of the value's first character
  std::string base_directory;  // what a relative path in this value is relative to

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_map() const { return kind == Kind::map; }

  // The value under a key, or null where this is no map or has no such key (the first where it is repeated).
  const Node* find(std::string_view key) const;
};

struct Node::Entry {
  std::string key;
  Place key_place;
  Node value;
};

// How large a document is.
struct Extent {
  std::size_t values = 0;  // maps, lists and scalars
  std::size_t bytes = 0;   // of the texts of scalars and keys
  std::size_t levels = 0;
};
Extent extent_of(const Node& node);

// "a map", "a list", "'abc'", "nothing": for messages.
std::string describe(const Node& node);

// Nodes without a place, for what is written.
Node scalar_node(std::string text, bool quoted = false);
Node sequence_node(std::vector<Node> items = {});
Node map_node();
void append(Node& map, std::string key, Node value);

// One line of YAML: `[1, 2]`, `{name: adam, beta_1: 0.9}`, quoted where it must be; a literal "${" is escaped as "$${".
std::string flow_text(const Node& node);
// A key as YAML, quoted where it must be.
std::string key_text(const std::string& key);

// Where two values differ, as lines: "train.epochs: 5 before, 6 now". Places do not count. Empty where they are equal.
std::vector<std::string> differences(const Node& before, const Node& now);

}  // namespace trainctl
