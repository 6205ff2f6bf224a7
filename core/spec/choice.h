// A choice: a value from a table of alternatives, with its options. Written as `adam`, `{name: adam, learning_rate:
// 1e-3}`, or in a list `- dense: {units: 10}`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

struct ChoiceTable;
struct Section;

// Base of the options that a choice (a layer, an optimizer, a dataset) carries.
struct Options {
  virtual ~Options() = default;
};

struct Choice {
  std::string name;  // empty: not given
  SourceLocation location;
  std::shared_ptr<const Options> options;

  explicit operator bool() const { return options != nullptr; }
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*options);
  }
};

// Reads `adam` or `{name: adam, learning_rate: 1e-3}`. False after reporting an error.
bool read_choice(const ChoiceTable& table, const Node& node, Reader& reader, Choice& choice);
// Reads a list whose items are bare names, one-key maps `- dense: {units: 10}`, or maps with `name`. False after
// reporting an error; wrong items are then empty choices in the list.
bool read_choices(const ChoiceTable& table, const Node& node, Reader& reader, std::vector<Choice>& choices);
// Writes a choice so that reading gives an equal one: the bare name of options without keys, otherwise `{name: adam,
// ...}`, and in a list `- adam: {...}`.
Node write_choice(const ChoiceTable& table, const Choice& choice);
Node write_choices(const ChoiceTable& table, const std::vector<Choice>& choices);
// The choice of this name with default options.
Choice default_choice(const ChoiceTable& table, const std::string& name);

// A choice whose name was read and whose options were not; `section` is null after an unknown name was reported.
struct OpenChoice {
  const Section* section = nullptr;
  std::shared_ptr<Options> options;
};
OpenChoice open_choice(const ChoiceTable& table, const Node& name, Reader& reader);

}  // namespace trainctl
