// One declaration per key: from it come parsing, checking, the JSON Schema and the reference.
//
// An options struct declares its keys beside itself:
//
//   Keys<DenseOptions> DenseOptions::keys() {
//     return Keys<DenseOptions>("dense", "A fully connected layer: y = activation(x kernel + bias).")
//         .required("units", &DenseOptions::units, "Number of outputs.", at_least(1))
//         .key("use_bias", &DenseOptions::use_bias, "Whether a bias is added.");
//   }
//
// The default of a key is the member's value in a default-constructed struct. How a member's type is read, described and
// printed is Value<Type> (core/spec/values.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/base/error.h"
#include "core/spec/type_info.h"

namespace trainctl {

// Base of options that a choice (a layer, an optimizer, a dataset) carries.
struct Options {
  virtual ~Options() = default;
};

// Collects the findings of one config, so that all errors come at once.
class Reader {
 public:
  void error(const Place& place, std::string message) { diagnostics_.push_back({place, std::move(message), {}, {}}); }
  void error(const Place& place, std::string message, const Place& related_place, std::string related) {
    diagnostics_.push_back({place, std::move(message), related_place, std::move(related)});
  }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool ok() const { return diagnostics_.empty(); }
  // Throws ConfigError with everything found, in the order of the file.
  void throw_if_failed() const;

 private:
  std::vector<Diagnostic> diagnostics_;
};

// How values of type T are read from a document, described for the schema, and printed as a default.
//   static TypeInfo type();
//   static bool read(const Node& node, Reader& reader, T& value);   // false after reporting an error
//   static std::string text(const T& value);                        // YAML of the value; "" where there is no default
template <class T>
struct Value;

// A key of a section, its member's type erased.
struct Key {
  std::string name;
  std::string meaning;  // one sentence, with units
  TypeInfo type;
  bool required = false;
  std::string default_text;
  std::function<bool(const Node&, Reader&, void*)> read;  // into the object that the section fills
};

// A map's keys: what a section of the config, or the options of a choice, may hold.
struct Section {
  std::string name;
  std::string meaning;
  std::string shorthand;  // this key takes the value where it is no map: `resize: 256`
  std::vector<Key> keys;
  std::function<std::shared_ptr<Options>()> make;  // set where the struct derives from Options
  std::vector<std::function<void(const void*, const Node&, Reader&)>> checks;  // across keys, run when all keys were read

  const Key* find(std::string_view key) const;
  // Reads a map (or the shorthand's value, or null for all defaults) into the object. Reports unknown keys (with a
  // suggestion), repeated ones, missing ones, wrong types and ranges. False when something was reported.
  bool read(const Node& node, Reader& reader, void* object) const;
};

template <class T>
class Keys {
 public:
  Keys(std::string name, std::string meaning) {
    section_.name = std::move(name);
    section_.meaning = std::move(meaning);
    if constexpr (std::is_base_of_v<Options, T>) {
      section_.make = [] { return std::shared_ptr<Options>(std::make_shared<T>()); };
    }
  }

  template <class Member, class Owner>
  Keys&& key(std::string name, Member Owner::*member, std::string meaning, Range range = {}) && {
    add(std::move(name), member, std::move(meaning), range, false);
    return std::move(*this);
  }
  template <class Member, class Owner>
  Keys&& required(std::string name, Member Owner::*member, std::string meaning, Range range = {}) && {
    add(std::move(name), member, std::move(meaning), range, true);
    return std::move(*this);
  }
  // The key that takes the value where the options are no map.
  Keys&& shorthand(std::string name) && {
    section_.shorthand = std::move(name);
    return std::move(*this);
  }
  // A rule across keys: check(options, node, reader) reports what is wrong.
  template <class Check>
  Keys&& check(Check rule) && {
    section_.checks.push_back([rule = std::move(rule)](const void* object, const Node& node, Reader& reader) {
      rule(*static_cast<const T*>(object), node, reader);
    });
    return std::move(*this);
  }

  operator Section() && { return std::move(section_); }  // NOLINT: a Keys exists to become a Section

 private:
  template <class Member, class Owner>
  void add(std::string name, Member Owner::*member, std::string meaning, Range range, bool required) {
    static_assert(std::is_base_of_v<Owner, T>);
    Key key;
    key.name = std::move(name);
    key.meaning = std::move(meaning);
    key.type = Value<Member>::type();
    key.type.range = range;
    key.required = required;
    const T defaults{};
    if (!required) key.default_text = Value<Member>::text(defaults.*member);
    key.read = [member, range, name = key.name](const Node& node, Reader& reader, void* object) {
      Member& target = static_cast<T*>(object)->*member;
      return Value<Member>::read(node, reader, target) && check_range(range, node, name, reader);
    };
    section_.keys.push_back(std::move(key));
  }
  static bool check_range(const Range& range, const Node& node, const std::string& name, Reader& reader);

  Section section_;
};

// Reports a number outside the range ("units must be at least 1, not 0"); for lists, every number in it.
bool check_range(const Range& range, const Node& node, const std::string& name, Reader& reader);

template <class T>
bool Keys<T>::check_range(const Range& range, const Node& node, const std::string& name, Reader& reader) {
  return trainctl::check_range(range, node, name, reader);
}

// The possible values of a choice: one line each. Names are unique.
struct ChoiceTable {
  std::string what;  // "optimizer": for messages
  std::vector<Section> choices;

  const Section* find(std::string_view name) const;
};

// A value taken from a table: `adam`, `{name: adam, ...}`, or in a list `- adam: {...}`.
struct Choice {
  std::string name;  // empty: not given
  Place place;
  std::shared_ptr<const Options> options;

  explicit operator bool() const { return options != nullptr; }
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*options);
  }
};

// Reads `adam` or `{name: adam, learning_rate: 1e-3}`.
bool read_choice(const ChoiceTable& table, const Node& node, Reader& reader, Choice& choice);
// Reads a list whose items are bare names or one-key maps: `- dense: {units: 10}`.
bool read_choices(const ChoiceTable& table, const Node& node, Reader& reader, std::vector<Choice>& choices);

// The nearest of the names by edit distance, or "" where none is near: "unknown key 'unitz'; did you mean 'units'?".
std::string nearest(std::string_view name, const std::vector<std::string>& names);

}  // namespace trainctl
