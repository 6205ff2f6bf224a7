// The description of a key's type, from which schema and reference are written, and the words of enums.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

struct ChoiceTable;
struct Section;

// The words of an enum, in the order of the reference:
//   template <> struct EnumNames<Padding> {
//     static constexpr EnumName<Padding> names[] = {{Padding::same, "same"}, {Padding::valid, "valid"}};
//   };
template <class E>
struct EnumName {
  E value;
  std::string_view name;
};
template <class E>
struct EnumNames;

template <class E>
std::string_view name_of(E value) {
  for (const EnumName<E>& entry : EnumNames<E>::names) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

// Bounds of a number.
struct Range {
  std::optional<double> at_least;
  std::optional<double> more_than;
  std::optional<double> at_most;
  std::optional<double> less_than;
};

inline Range at_least(double bound) { return {bound, {}, {}, {}}; }
inline Range more_than(double bound) { return {{}, bound, {}, {}}; }
inline Range between(double low, double high) { return {low, {}, high, {}}; }
// The half-open range [0, bound), as for rates.
inline Range from_zero_to_below(double bound) { return {0.0, {}, {}, bound}; }

struct TypeInfo {
  enum class Kind {
    boolean,
    integer,
    number,
    string,
    path,         // a file or folder, relative to the file that names it
    duration,     // "10 steps", "1 epoch", "30 s"
    time,         // "30 s", "5 min"
    size,         // "25 MB"
    enumeration,  // one of `names`
    list,         // of `item`
    map,          // from names to `item`
    section,      // a map with the keys of `section`
    choice,       // one of `table`
    choices,      // a list of choices of `table`
    any,          // any value; the key's meaning describes it
  };

  Kind kind = Kind::any;
  std::vector<std::string> names;  // of an enumeration; for other kinds words that are accepted as well: "none", "auto"
  std::shared_ptr<const TypeInfo> item;  // of a list or map
  std::size_t length = 0;                // of a list: the number of items; 0: any
  bool single_item_allowed = false;      // of a list: one value stands for all items (kernel_size: 3)
  bool by_name = false;  // a map from names to values of this type is accepted as well (core/spec/by_name.h)
  // Functions instead of values, since a layer's options may contain layers: they are called after all tables are
  // built.
  const Section& (*section)() = nullptr;
  const ChoiceTable& (*table)() = nullptr;
  Range range;  // of a number, or of each number in a list or map
};

// The expected value in words, for messages: "a whole number", "same, valid or a whole number".
std::string describe(const TypeInfo& type);

}  // namespace trainctl
