// The description of a key's type, for the schema and the reference, and the words of enums.
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

// The words of an enum, in the order in which the reference lists them:
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

// The numbers from `bound` on, the numbers above `bound`, and the numbers from `low` to `high`.
inline Range at_least(double bound) { return {bound, {}, {}, {}}; }
inline Range more_than(double bound) { return {{}, bound, {}, {}}; }
inline Range between(double low, double high) { return {low, {}, high, {}}; }
// The half-open range [0, bound), for example of a dropout rate.
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
    list,         // a list of `item`
    map,          // a map from names to `item`
    section,      // a map with the keys of `section`
    choice,       // one of `table`
    choices,      // a list of choices of `table`
    any,          // any value; the key's meaning describes it
  };

  Kind kind = Kind::any;
  // The words of an enumeration. For other kinds: words that are accepted as well, such as "none" and "auto".
  std::vector<std::string> names;
  std::shared_ptr<const TypeInfo> item;  // type of the items of a list or map
  std::size_t length = 0;                // number of items of a list; 0: any number
  bool single_item_allowed = false;      // for a list: one value may be given instead (kernel_size: 3)
  bool by_name = false;  // whether a map from names to such values is accepted as well (core/spec/by_name.h)
  // Functions instead of references, because a layer's options may contain layers: they are called after all tables
  // have been built.
  const Section& (*section)() = nullptr;
  const ChoiceTable& (*table)() = nullptr;
  Range range;  // range of the number, or of each number in a list or map
};

// The expected value in words, for messages: "a whole number", "same, valid or a whole number".
std::string describe(const TypeInfo& type);

}  // namespace trainctl
