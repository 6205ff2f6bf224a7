// Declarations of config keys. Parsing, checks, the JSON Schema and the reference are derived from them.
//
// An options struct declares its keys in a static function keys():
//
//   Keys<DenseOptions> DenseOptions::keys() {
//     return Keys<DenseOptions>("dense", "A fully connected layer: y = activation(x kernel + bias).")
//         .required("units", &DenseOptions::units, "Number of outputs.", at_least(1))
//         .key("use_bias", &DenseOptions::use_bias, "Whether a bias is added.");
//   }
//
// The default of a key is the member's value in a default-constructed struct. Value<Type> (core/spec/values.h) reads,
// describes and writes a member of that type.
#pragma once

#include <cstddef>
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

// Value<T> reads values of type T from a document, describes the type for the schema, and writes values:
//   static TypeInfo type();
//   static bool read(const Node& node, Reader& reader, T& value);   // false after reporting an error
//   static Node write(const T& value);
// read() makes an equal value from the node that write() returns. write() returns null if there is no value.
template <class T>
struct Value;

// The functions of Value<Member> for a member whose type is erased.
struct MemberFunctions {
  TypeInfo (*type)();
  bool (*read)(const Node& node, Reader& reader, void* member);
  Node (*write)(const void* member);
};
template <class Member>
inline constexpr MemberFunctions member_functions = {
    [] { return Value<Member>::type(); },
    [](const Node& node, Reader& reader, void* member) {
      return Value<Member>::read(node, reader, *static_cast<Member*>(member));
    },
    [](const void* member) { return Value<Member>::write(*static_cast<const Member*>(member)); }};

// A key of a section. The types of the options struct and of its member are erased.
struct Key {
  std::string name;
  std::string meaning;  // one sentence, with units
  TypeInfo type;
  bool required = false;
  std::string default_text;  // one line of YAML; empty if there is no default
  bool rest = false;         // its value is a map of the entries whose keys are not keys of the section
  const MemberFunctions* functions = nullptr;
  std::ptrdiff_t offset = 0;  // bytes from the begin of the options struct to the member

  // Reads the member of an options struct; returns false after reporting an error.
  bool read(const Node& node, Reader& reader, void* object) const;
  Node write(const void* object) const;

  // The section and the options of a flattened choice: the keys of the choice are in the same map as this key.
  // `flatten` reads the choice's name and returns the section and options; it is empty for all other keys.
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
  std::vector<std::string> aliases;  // for a choice: other names that configs may use; output always shows `name`
  std::string shorthand;             // the key that is set if the value is not a map: `resize: 256`
  std::vector<Key> keys;
  std::unique_ptr<Options> (*make)() = nullptr;  // set if the struct derives from Options
  // A group of keys. At most one key of an `exclusive` group may have a value; at least one key of a `needed` group
  // must have a value. The schema contains both rules.
  struct Group {
    std::vector<std::string> keys;
    std::string meaning;  // what the group sets, for messages
  };
  std::vector<Group> exclusive;
  std::vector<Group> needed;
  // Rules across keys. They run only if all required keys of the section are present and the section's own values were
  // read without error. Nested sections and choices may have errors; a choice with an error is empty.
  std::vector<std::function<void(const void*, const Node&, Reader&)>> checks;

  // The key of this name, which is not the key of the remaining entries; nullptr if there is none.
  const Key* find(std::string_view key) const;
  // The key of the remaining entries; nullptr if the section has none.
  const Key* rest() const;
  // Whether a map with the key `name` is this alternative of a choice, like {expression: x - y}
  // (ChoiceTable::known_by_key()). Such an alternative may have a key "name" of its own.
  bool is_known_by_key() const;
  // Reads a map (or the value of the shorthand key, or null for all defaults) into the object. Reports unknown keys
  // (with a suggestion), repeated and missing keys, wrong types and values out of range; returns false if it reported
  // an error. Skips the key `ignored`, which the caller reads.
  bool read(const Node& node, Reader& reader, void* object, std::string_view ignored = {}) const;
  // Writes a map with every key that has a value, including defaults; read() makes an equal object from the map.
  Node write(const void* object) const;

 private:
  bool read_map(const Node& map, Reader& reader, void* object, std::string_view ignored) const;
};

// Adds a key to the section. `offset` is the position of its member in the options struct; `defaults` is an options
// struct with the default values. A key has more than this function sets only if Keys sets it.
Key& add_key(Section& section, std::string_view name, std::string_view meaning, const Range& range, bool required,
             const MemberFunctions& functions, std::ptrdiff_t offset, const void* defaults);

// The compiler makes a copy of each function here for each options struct or each type of a member. Therefore they do
// as little as possible; add_key() does the rest.
template <class T>
class Keys {
 public:
  Keys(std::string_view name, std::string_view meaning) {
    section_.name = name;
    section_.meaning = meaning;
    if constexpr (std::is_base_of_v<Options, T>) {
      section_.make = [] { return std::unique_ptr<Options>(new T()); };
    }
  }

  template <class Member, class Owner>
  Keys&& key(std::string_view name, Member Owner::*member, std::string_view meaning, const Range& range = {}) && {
    add(name, member, meaning, range, false);
    return std::move(*this);
  }
  template <class Member, class Owner>
  Keys&& required(std::string_view name, Member Owner::*member, std::string_view meaning, const Range& range = {}) && {
    add(name, member, meaning, range, true);
    return std::move(*this);
  }
  // Declares a map that has all entries of the section whose keys are not keys of the section. `name` describes them in
  // the reference.
  template <class Member, class Owner>
  Keys&& rest(std::string_view name, Member Owner::*member, std::string_view meaning, const Range& range = {}) && {
    Key& key = add(name, member, meaning, range, false);
    key.rest = true;
    key.default_text.clear();
    return std::move(*this);
  }
  // Declares a flattened choice (a ChoiceOf): the keys of its options are in the same map as this key. Example:
  // `dataset: idx`, next to the key `images` of idx. The key is required unless the member has a default.
  template <class Member, class Owner>
  Keys&& flattened(std::string_view name, Member Owner::*member, std::string_view meaning) && {
    const bool required = !(*defaults_.*member);
    add(name, member, meaning, {}, required).flatten = [member](const Node& node, Reader& reader,
                                                                void* object) -> Key::Flattened {
      const OpenChoice open = open_choice(Value<Member>::type().table(), node, reader);
      if (!open.section) return {};
      static_cast<Choice&>(static_cast<T*>(object)->*member) = {open.section->name, node.location, open.options};
      return {open.section, dynamic_cast<void*>(open.options.get())};
    };
    return std::move(*this);
  }
  // Adds another name that configs may use for the choice.
  Keys&& alias(std::string name) && {
    section_.aliases.push_back(std::move(name));
    return std::move(*this);
  }
  // Names the key that is set if the config has a value instead of a map of options.
  Keys&& shorthand(std::string name) && {
    section_.shorthand = std::move(name);
    return std::move(*this);
  }
  // At most one of these keys may have a value ("none", an empty list and an empty map do not count as values).
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

  operator Section() && { return std::move(section_); }  // NOLINT: a Keys object is a builder of a Section

 private:
  template <class Member, class Owner>
  Key& add(std::string_view name, Member Owner::*member, std::string_view meaning, const Range& range, bool required) {
    static_assert(std::is_base_of_v<Owner, T>);
    const T& defaults = *defaults_;
    const auto offset = reinterpret_cast<const char*>(&(defaults.*member)) - reinterpret_cast<const char*>(&defaults);
    return add_key(section_, name, meaning, range, required, member_functions<Member>, offset, &defaults);
  }

  std::unique_ptr<const T> defaults_{new T()};
  Section section_;
};

// The alternatives of a choice: one section for each, with unique names and aliases.
struct ChoiceTable {
  std::string what;  // noun for messages: "optimizer"
  std::vector<Section> choices;

  // The alternative with this name or alias; nullptr if there is none.
  const Section* find(std::string_view name) const;
  // The alternative that a map names by a key (Section::is_known_by_key()), such as {expression: x - y}, not
  // {expression: {expression: x - y}}; nullptr if there is none.
  const Section* known_by_key(const Node& map) const;
};

}  // namespace trainctl
