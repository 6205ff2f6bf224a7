// Value<T> for every type of option: reads, describes and writes its values.
//
// The types are: bool, int, int64, uint64, float, double (also fractions: 1/255), string, Path, Duration, Seconds,
// Size, Node (any value); enums with an EnumNames (core/spec/type_info.h); std::optional<T> (`none`), Auto<T> (`auto`),
// Located<T>, std::variant<Enum, T> (a word, or a T); std::vector<T>, std::array<T, n> (n items, or one for all),
// std::map<std::string, T>; structs with keys(); ChoiceOf<table> and ChoicesOf<table>.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/spec/keys.h"
#include "core/spec/units.h"

namespace trainctl {

// The path of a file or folder. A relative path in a config is joined to the base_directory of its node when the
// config is read.
struct Path {
  std::string text;

  bool empty() const { return text.empty(); }
  bool operator==(const Path&) const = default;
};

// An option that trainctl determines itself if the config sets `auto`.
template <class T>
struct Auto {
  std::optional<T> given;  // empty: auto

  bool is_auto() const { return !given; }
  T or_else(T found) const { return given ? *given : std::move(found); }
  bool operator==(const Auto&) const = default;
};

// An option and the location of its value in the config, for errors that are found later.
template <class T>
struct Located {
  T value;
  SourceLocation location;  // unknown if the value is the default

  Located(T v = {}, SourceLocation l = {}) : value(std::move(v)), location(std::move(l)) {}
  bool operator==(const Located& other) const { return value == other.value; }
};

// The section of a struct that declares keys(); it is built at the first call.
template <class T>
const Section& section_of() {
  static const Section section = T::keys();
  return section;
}

// A choice from the table that the function `table` returns. `ChoiceOf<optimizer_table> optimizer{"sgd"};` declares a
// member with the default sgd.
template <const ChoiceTable& (*table)()>
struct ChoiceOf : Choice {
  ChoiceOf() = default;
  ChoiceOf(const char* name) : Choice(default_choice(table(), name)) {}  // NOLINT: implicit, for defaults
};

// A list of choices: layers, metrics, transforms.
template <const ChoiceTable& (*table)()>
struct ChoicesOf : std::vector<Choice> {
  using std::vector<Choice>::vector;
};

template <class T, TypeInfo::Kind kind>
struct ScalarValue {
  static TypeInfo type() { return {.kind = kind}; }
  static bool read(const Node& node, Reader& reader, T& value);
  static Node write(const T& value);
};
template <>
struct Value<bool> : ScalarValue<bool, TypeInfo::Kind::boolean> {};
template <>
struct Value<int> : ScalarValue<int, TypeInfo::Kind::integer> {};
template <>
struct Value<std::int64_t> : ScalarValue<std::int64_t, TypeInfo::Kind::integer> {};
template <>
struct Value<std::uint64_t> : ScalarValue<std::uint64_t, TypeInfo::Kind::integer> {};
template <>
struct Value<float> : ScalarValue<float, TypeInfo::Kind::number> {};
template <>
struct Value<double> : ScalarValue<double, TypeInfo::Kind::number> {};
template <>
struct Value<std::string> : ScalarValue<std::string, TypeInfo::Kind::string> {};
template <>
struct Value<Path> : ScalarValue<Path, TypeInfo::Kind::path> {};
template <>
struct Value<Duration> : ScalarValue<Duration, TypeInfo::Kind::duration> {};
template <>
struct Value<Seconds> : ScalarValue<Seconds, TypeInfo::Kind::time> {};
template <>
struct Value<Size> : ScalarValue<Size, TypeInfo::Kind::size> {};

// A node that is stored unread, because the meaning of the value depends on another value.
template <>
struct Value<Node> {
  static TypeInfo type() { return {}; }
  static bool read(const Node& node, Reader&, Node& value) {
    value = node;
    return true;
  }
  static Node write(const Node& value) { return value; }
};

// Reads a word of an enum and returns its index in `words`, or -1 for any other value, which is reported as an error if
// `report` is true.
int read_word(const Node& node, Reader& reader, const std::vector<std::string>& words, bool report);

template <class E>
requires std::is_enum_v<E>
struct Value<E> {
  static TypeInfo type() {
    TypeInfo info{.kind = TypeInfo::Kind::enumeration};
    for (const auto& entry : EnumNames<E>::names) info.names.emplace_back(entry.name);
    return info;
  }
  static bool read(const Node& node, Reader& reader, E& value) { return read(node, reader, value, true); }
  static bool read(const Node& node, Reader& reader, E& value, bool report) {
    const int index = read_word(node, reader, type().names, report);
    if (index >= 0) value = EnumNames<E>::names[index].value;
    return index >= 0;
  }
  static Node write(E value) { return scalar_node(std::string(name_of(value))); }
};

template <class T>
requires requires { T::keys(); }
struct Value<T> {
  static TypeInfo type() { return {.kind = TypeInfo::Kind::section, .section = &section_of<T>}; }
  static bool read(const Node& node, Reader& reader, T& value) { return section_of<T>().read(node, reader, &value); }
  static Node write(const T& value) { return section_of<T>().write(&value); }
};

// For types that accept words in addition to the values of T, such as std::optional and Auto: is_word() tells whether
// the node is the word, and with_words() adds words to the description of T.
bool is_word(const Node& node, std::string_view word);
TypeInfo with_words(TypeInfo type, const std::vector<std::string>& words);

template <class T>
struct Value<Located<T>> {
  static TypeInfo type() { return Value<T>::type(); }
  static bool read(const Node& node, Reader& reader, Located<T>& value) {
    value.location = node.location;
    return Value<T>::read(node, reader, value.value);
  }
  static Node write(const Located<T>& value) { return Value<T>::write(value.value); }
};

template <class T>
struct Value<std::optional<T>> {
  static TypeInfo type() { return with_words(Value<T>::type(), {"none"}); }
  static bool read(const Node& node, Reader& reader, std::optional<T>& value) {
    value.reset();
    if (is_word(node, "none")) return true;
    const ReadingContext context(reader, std::vector<std::string>{"none"});
    return Value<T>::read(node, reader, value.emplace());
  }
  static Node write(const std::optional<T>& value) { return value ? Value<T>::write(*value) : scalar_node("none"); }
};

template <class T>
struct Value<Auto<T>> {
  static TypeInfo type() { return with_words(Value<T>::type(), {"auto"}); }
  static bool read(const Node& node, Reader& reader, Auto<T>& value) {
    value.given.reset();
    if (is_word(node, "auto")) return true;
    const ReadingContext context(reader, std::vector<std::string>{"auto"});
    return Value<T>::read(node, reader, value.given.emplace());
  }
  static Node write(const Auto<T>& value) { return value.given ? Value<T>::write(*value.given) : scalar_node("auto"); }
};

template <class E, class T>
requires std::is_enum_v<E>
struct Value<std::variant<E, T>> {
  static TypeInfo type() { return with_words(Value<T>::type(), Value<E>::type().names); }
  static bool read(const Node& node, Reader& reader, std::variant<E, T>& value) {
    if (E word{}; Value<E>::read(node, reader, word, false)) {
      value = word;
      return true;
    }
    const ReadingContext context(reader, Value<E>::type().names);
    return Value<T>::read(node, reader, value.template emplace<T>());
  }
  static Node write(const std::variant<E, T>& value) {
    return value.index() == 0 ? Value<E>::write(std::get<0>(value)) : Value<T>::write(std::get<1>(value));
  }
};

template <class T>
struct Value<std::vector<T>> {
  static TypeInfo type() {
    return {.kind = TypeInfo::Kind::list, .item = std::make_shared<const TypeInfo>(Value<T>::type())};
  }
  static bool read(const Node& node, Reader& reader, std::vector<T>& value) {
    value.clear();
    if (!node.is_sequence()) return reader.expected(node, type()), false;
    bool good = true;
    for (const Node& item : node.items) {
      T read{};
      good &= Value<T>::read(item, reader, read);
      value.push_back(std::move(read));
    }
    return good;
  }
  static Node write(const std::vector<T>& value) {
    Node node = sequence_node();
    for (const T& item : value) node.items.push_back(Value<T>::write(item));
    return node;
  }
};

template <class T, std::size_t count>
struct Value<std::array<T, count>> {
  static TypeInfo type() {
    return {.kind = TypeInfo::Kind::list,
            .item = std::make_shared<const TypeInfo>(Value<T>::type()),
            .length = count,
            .single_item_allowed = true};
  }
  static bool read(const Node& node, Reader& reader, std::array<T, count>& value) {
    if (node.is_scalar()) {
      T single{};
      if (!Value<T>::read(node, reader, single)) return false;
      value.fill(single);
      return true;
    }
    if (!node.is_sequence() || node.items.size() != count) return reader.expected(node, type()), false;
    bool good = true;
    for (std::size_t i = 0; i < count; ++i) good &= Value<T>::read(node.items[i], reader, value[i]);
    return good;
  }
  static Node write(const std::array<T, count>& value) {
    Node node = sequence_node();
    for (const T& item : value) node.items.push_back(Value<T>::write(item));
    return node;
  }
};

// Reports keys that occur more than once in a map; returns false if there are any.
bool keys_are_unique(const Node& map, Reader& reader);

template <class T>
struct Value<std::map<std::string, T>> {
  static TypeInfo type() {
    return {.kind = TypeInfo::Kind::map, .item = std::make_shared<const TypeInfo>(Value<T>::type())};
  }
  static bool read(const Node& node, Reader& reader, std::map<std::string, T>& value) {
    value.clear();
    if (!node.is_map()) return reader.expected(node, type()), false;
    bool good = keys_are_unique(node, reader);
    for (const Node::Entry& entry : node.entries) {
      const ReadingContext context(reader, entry.key);
      good &= Value<T>::read(entry.value, reader, value[entry.key]);
    }
    return good;
  }
  static Node write(const std::map<std::string, T>& value) {
    Node node = map_node();
    for (const auto& [name, item] : value) append(node, name, Value<T>::write(item));
    return node;
  }
};

template <const ChoiceTable& (*table)()>
struct Value<ChoiceOf<table>> {
  static TypeInfo type() { return {.kind = TypeInfo::Kind::choice, .table = table}; }
  static bool read(const Node& node, Reader& reader, ChoiceOf<table>& value) {
    return read_choice(table(), node, reader, value);
  }
  static Node write(const ChoiceOf<table>& value) { return value ? write_choice(table(), value) : Node{}; }
};

template <const ChoiceTable& (*table)()>
struct Value<ChoicesOf<table>> {
  static TypeInfo type() { return {.kind = TypeInfo::Kind::choices, .table = table}; }
  static bool read(const Node& node, Reader& reader, ChoicesOf<table>& value) {
    return read_choices(table(), node, reader, value);
  }
  static Node write(const ChoicesOf<table>& value) {
    return value.empty() ? sequence_node() : write_choices(table(), value);
  }
};

}  // namespace trainctl
