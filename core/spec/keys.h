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
// The default of a key is the member's value in a default-constructed struct. How a member's type is read, described
// and written is Value<Type> (core/spec/values.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/spec/choice.h"
#include "core/spec/reader.h"
#include "core/spec/type_info.h"

namespace trainctl {

// How values of type T are read from a document, described for the schema, and written.
//   static TypeInfo type();
//   static bool read(const Node& node, Reader& reader, T& value);   // false after reporting an error
//   static Node write(const T& value);                              // reads back equal; null where there is no value
template <class T>
struct Value;

// A key of a section, with its member's type erased: functions take the object that the section fills as void*.
struct Key {
  std::string name;
  std::string meaning;  // one sentence, with units
  TypeInfo type;
  bool required = false;
  std::string default_text;  // a line of YAML; empty where there is no default
  std::function<bool(const Node&, Reader&, void*)> read;
  std::function<Node(const void*)> write;

  // The section and the object of a flattened choice, whose keys stand beside this key; set by `flatten`, which reads
  // the choice's name.
  struct Flattened {
    const Section* section = nullptr;
    void* object = nullptr;
  };
  std::function<Flattened(const Node&, Reader&, void*)> flatten;
};

// The keys of a map: a section of the config, or the options of a choice.
struct Section {
  std::string name;
  std::string meaning;
  std::vector<std::string> aliases;  // of a choice: other names that it may be written with; it is shown under its own
  std::string shorthand;             // the key that takes the value where it is not a map: `resize: 256`
  std::vector<Key> keys;
  std::function<std::shared_ptr<Options>()> make;  // set where the struct derives from Options
  // A group of keys: of `exclusive` at most one may have a value, of `needed` at least one must. The schema states
  // both.
  struct Group {
    std::vector<std::string> keys;
    std::string meaning;  // what they state together
  };
  std::vector<Group> exclusive;
  std::vector<Group> needed;
  // Rules across keys. They run only where the section's own keys are present and were read without error; a section or
  // choice below it may have errors, and the choice is then empty.
  std::vector<std::function<void(const void*, const Node&, Reader&)>> checks;

  const Key* find(std::string_view key) const;
  // Reads a map (or the shorthand's value, or null for all defaults) into the object. Reports unknown keys (with a
  // suggestion), repeated and missing keys, wrong types and values out of range. False when something was reported. The
  // key `ignored` is skipped: the caller reads it.
  bool read(const Node& node, Reader& reader, void* object, std::string_view ignored = {}) const;
  // Writes a map with every key that has a value, defaults included; read() gives an equal object from the map.
  Node write(const void* object) const;

 private:
  bool read_map(const Node& map, Reader& reader, void* object, std::string_view ignored) const;
};

// Reports a number outside the range ("units must be at least 1, not 0"); for lists and maps, every number in them.
bool check_range(const Range& range, const Node& node, Reader& reader);

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
  // Declares a choice (a ChoiceOf) whose options' keys stand beside this key: `dataset: idx`, with idx's `images` next
  // to it. The key is required unless the member has a default.
  template <class Member, class Owner>
  Keys&& flattened(std::string name, Member Owner::*member, std::string meaning) && {
    const bool required = !(T{}.*member);
    add(std::move(name), member, std::move(meaning), {}, required);
    section_.keys.back().flatten = [member](const Node& node, Reader& reader, void* object) -> Key::Flattened {
      const OpenChoice open = open_choice(Value<Member>::type().table(), node, reader);
      if (!open.section) return {};
      static_cast<Choice&>(static_cast<T*>(object)->*member) = {open.section->name, node.location, open.options};
      return {open.section, dynamic_cast<void*>(open.options.get())};
    };
    return std::move(*this);
  }
  // Another name that the choice may be written with.
  Keys&& alias(std::string name) && {
    section_.aliases.push_back(std::move(name));
    return std::move(*this);
  }
  // Names the key that takes the value where the options are not a map.
  Keys&& shorthand(std::string name) && {
    section_.shorthand = std::move(name);
    return std::move(*this);
  }
  // At most one of these keys may have a value ("none", an empty list and an empty map are no value).
  Keys&& exclusive(std::vector<std::string> names) && {
    section_.exclusive.push_back({std::move(names), ""});
    return std::move(*this);
  }
  // At least one of these keys must have a value.
  Keys&& one_of(std::vector<std::string> names, std::string meaning) && {
    section_.needed.push_back({std::move(names), std::move(meaning)});
    return std::move(*this);
  }
  // Adds a rule across keys (see Section::checks): check(options, node, reader) reports errors; `node` is the section's
  // map.
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
    if (!required && key.type.kind != TypeInfo::Kind::section) {
      const Node value = Value<Member>::write(defaults.*member);
      if (!value.is_null()) key.default_text = flow_text(value);
    }
    key.read = [member, range](const Node& node, Reader& reader, void* object) {
      Member& target = static_cast<T*>(object)->*member;
      return Value<Member>::read(node, reader, target) && check_range(range, node, reader);
    };
    key.write = [member](const void* object) { return Value<Member>::write(static_cast<const T*>(object)->*member); };
    section_.keys.push_back(std::move(key));
  }

  Section section_;
};

// The alternatives of a choice, one section each, with unique names and aliases.
struct ChoiceTable {
  std::string what;  // noun for messages: "optimizer"
  std::vector<Section> choices;

  // The alternative with this name or alias.
  const Section* find(std::string_view name) const;
};

}  // namespace trainctl
