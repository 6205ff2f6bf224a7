// A choice: one alternative from a table, and its options. A config writes it as `adam`, as `{name: adam,
// learning_rate: 1e-3}`, or in a list as `- dense: {units: 10}`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

struct ChoiceTable;
struct Section;

// The base class of the options of a choice (a layer, an optimizer, a data set).
struct Options {
  virtual ~Options() = default;
};

struct Choice {
  std::string name;  // empty: not set
  SourceLocation location;
  std::shared_ptr<const Options> options;

  explicit operator bool() const { return options != nullptr; }
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*options);
  }
};

// Reads `adam` or `{name: adam, learning_rate: 1e-3}`, or a map with a key by which the alternative is known
// (ChoiceTable::known_by_key()). Returns false after reporting an error.
bool read_choice(const ChoiceTable& table, const Node& node, Reader& reader, Choice& choice);
// Reads a list whose items are bare names, one-key maps `- dense: {units: 10}`, or maps with `name`. Returns false
// after reporting an error; each wrong item is then an empty choice in the list.
bool read_choices(const ChoiceTable& table, const Node& node, Reader& reader, std::vector<Choice>& choices);
// Writes a choice so that reading returns an equal choice: the bare name if the options have no keys, otherwise `{name:
// adam, ...}`, or in a list `- adam: {...}`.
Node write_choice(const ChoiceTable& table, const Choice& choice);
Node write_choices(const ChoiceTable& table, const std::vector<Choice>& choices);
// The choice of this name with default options.
Choice default_choice(const ChoiceTable& table, const std::string& name);

// A choice with its name read and default options. `section` is null if the name is unknown, which open_choice()
// reports.
struct OpenChoice {
  const Section* section = nullptr;
  std::shared_ptr<Options> options;
};
OpenChoice open_choice(const ChoiceTable& table, const Node& name, Reader& reader);

}  // namespace trainctl
