// Numbers classes by the names of the training split.
#include "io/datasets/class_numbers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/tables/number_marks.h"

namespace trainctl {
namespace {

// The class number that a name states: a whole number in decimal digits.
std::optional<std::int32_t> stated_class(const std::string& name) {
  std::int32_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = problem == std::errc() && end == name.data() + name.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

bool state_numbers(const NamedSamples& samples) {
  for (std::int64_t i = 0; i < samples.count; ++i) {
    if (!stated_class(samples.class_name(i))) return false;
  }
  return samples.may_state_numbers;
}

std::vector<std::string> names_of(const NamedSamples& samples) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < samples.count; ++i) names.push_back(samples.class_name(i));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Throws Error{data} if two names are the same whole number, such as 1 and 1.0.
void refuse_two_spellings(const NamedSamples& samples, const std::vector<std::string>& names) {
  std::map<std::string, std::string> spellings;  // by the spelling as a whole number
  for (const std::string& name : names) {
    const std::string whole = whole_spelling(name);
    if (whole.empty()) continue;
    const auto [same, is_new] = spellings.emplace(whole, name);
    if (is_new) continue;
    const auto place_of = [&](const std::string& wanted) {
      std::int64_t i = 0;
      while (samples.class_name(i) != wanted) ++i;
      return samples.place(i);
    };
    data_error(place_of(name),
               format("the classes '{}' and '{}' ({}) are the same number", name, same->second, place_of(same->second)),
               "write a class in the same way everywhere; if they are two classes, use names that are not numbers");
  }
}

}  // namespace

ClassNumbers number_classes(const NamedSamples& samples, const std::string& path, const DeclaredInfo& declared) {
  ClassNumbers result;
  const bool numbers = declared.training ? declared.training->class_names.empty() : state_numbers(samples);
  if (declared.training) {
    result.names = declared.training->class_names;
  } else if (!numbers) {
    result.names = names_of(samples);
  }
  const std::vector<std::string>& names = result.names;
  if (declared.classes && !numbers && *declared.classes != std::ssize(names)) {
    data_error(path, format("has {}, but the config sets {}", counted(names.size(), "class"), *declared.classes),
               format("set `classes: {}`, or leave it out", names.size()));
  }
  if (!numbers && !declared.training && samples.may_state_numbers) refuse_two_spellings(samples, names);
  result.classes = declared.known_classes().value_or(numbers ? 0 : std::ssize(names));
  for (std::int64_t i = 0; i < samples.count; ++i) {
    const std::string name = samples.class_name(i);
    const auto found = std::lower_bound(names.begin(), names.end(), name);
    const bool named = found != names.end() && *found == name;
    const std::optional<std::int32_t> number = numbers ? stated_class(name)
                                               : named ? std::optional(static_cast<std::int32_t>(found - names.begin()))
                                                       : std::nullopt;
    if (!number || (declared.known_classes() && *number >= result.classes)) {
      data_error(samples.place(i),
                 format("has the class '{}', which {}", name.substr(0, 40),
                        declared.training ? "is not in the training split" : "is not below `classes`"));
    }
    result.labels.push_back(*number);
    result.classes = std::max(result.classes, std::int64_t{*number} + 1);
  }
  return result;
}

}  // namespace trainctl
