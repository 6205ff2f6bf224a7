// Computes the weights of classes: counts classes, and finds them by name.
#include "io/loader/splits/class_weights.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

std::string name_of_class(const DatasetInfo& info, std::int64_t number) {
  const bool named = static_cast<std::size_t>(number) < info.class_names.size();
  return named ? info.class_names[static_cast<std::size_t>(number)] : std::to_string(number);
}

// The first of some classes, in quotes: "'cat', 'dog' and 3 more".
std::string quoted_classes(const DatasetInfo& info, const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, numbers.size()); ++i) {
    text += format("{}'{}'", i == 0 ? "" : ", ", name_of_class(info, numbers[i]));
  }
  return numbers.size() > most ? format("{} and {} more", text, numbers.size() - most) : text;
}

// The names that a weight may have: "; the classes are 'cat', 'dog'".
std::string possible_classes(const DatasetInfo& info) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(info.classes));
  std::iota(all.begin(), all.end(), 0);
  if (info.classes == 1) return format("; the only class is {}", quoted_classes(info, all));
  return format("; the classes are {}", quoted_classes(info, all));
}

std::vector<float> balanced(const SourceLocation& location, const Dataset& targets, const Subset& training) {
  const DatasetInfo& info = targets.info();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(info.classes));
  for (std::int64_t i = 0; i < training.size(); ++i) {
    const std::int32_t label = targets.label(training[i]);
    if (label >= 0 && label < info.classes) ++counts[static_cast<std::size_t>(label)];  // else the loss ignores it
  }
  std::vector<std::int64_t> empty;
  for (std::int64_t c = 0; c < info.classes; ++c) {
    if (counts[static_cast<std::size_t>(c)] == 0) empty.push_back(c);
  }
  if (!empty.empty()) {
    throw Error(ErrorKind::config, location,
                format("class_weights: {} in the training split, so that `balanced` has no weight for {}",
                       empty.size() == 1 ? format("class {} has no sample", quoted_classes(info, empty))
                                         : format("the classes {} have no samples", quoted_classes(info, empty)),
                       empty.size() == 1 ? "it" : "them"),
                "set the weights by class, such as {" + name_of_class(info, empty[0]) +
                    ": 1}, add samples, or choose another validation split");
  }
  std::vector<float> weights;
  for (std::int64_t c = 0; c < info.classes; ++c) {
    const std::int64_t count = counts[static_cast<std::size_t>(c)];
    const double even = static_cast<double>(training.size()) / static_cast<double>(info.classes);
    weights.push_back(static_cast<float>(even / static_cast<double>(count)));
  }
  return weights;
}

// Returns the number of the class with this name or number; -1 if there is none.
std::int64_t find_class(const DatasetInfo& info, const std::string& name) {
  const auto named = std::ranges::find(info.class_names, name);
  if (named != info.class_names.end()) return named - info.class_names.begin();
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number >= 0 && number < info.classes ? number : -1;
}

}  // namespace

std::vector<float> weights_by_class(const ClassWeights& declared, const Dataset& targets, const Subset& training) {
  const DatasetInfo& info = targets.info();
  if (info.classes == 0 || info.target.rank() > 0) {
    throw Error(ErrorKind::config, declared.location,
                info.classes == 0
                    ? "class_weights need classes, but the targets are values"
                    : "class_weights need one class for each sample, but the targets are classes of positions",
                "leave class_weights out, or provide weights in the data");
  }
  const auto* by_name = std::get_if<std::map<std::string, double>>(&declared.value);
  if (by_name == nullptr) return balanced(declared.location, targets, training);
  std::vector<float> weights(static_cast<std::size_t>(info.classes), 1.0f);
  std::map<std::int64_t, std::string> named;
  for (const auto& [name, weight] : *by_name) {
    const std::int64_t number = find_class(info, name);
    if (number < 0) {
      std::string hint = suggestion(name, info.class_names);
      if (hint.empty()) hint = possible_classes(info);
      throw Error(ErrorKind::config, declared.location, format("class_weights: there is no class '{}'{}", name, hint));
    }
    if (const auto [first, is_new] = named.emplace(number, name); !is_new) {
      throw Error(ErrorKind::config, declared.location,
                  format("class_weights: '{}' and '{}' are the same class", first->second, name),
                  "give each class one weight");
    }
    weights[static_cast<std::size_t>(number)] = static_cast<float>(weight);
  }
  return weights;
}

std::string unnamed_classes_warning(const ClassWeights& declared, const DatasetInfo& info) {
  const auto* by_name = std::get_if<std::map<std::string, double>>(&declared.value);
  if (by_name == nullptr) return "";
  std::vector<bool> named(static_cast<std::size_t>(info.classes));
  for (const auto& [name, weight] : *by_name) {
    if (const std::int64_t number = find_class(info, name); number >= 0) named[static_cast<std::size_t>(number)] = true;
  }
  std::vector<std::int64_t> unnamed;
  for (std::int64_t c = 0; c < info.classes; ++c) {
    if (!named[static_cast<std::size_t>(c)]) unnamed.push_back(c);
  }
  if (unnamed.empty()) return "";
  return format(
      "class_weights names no weight for {}, whose samples have weight 1: add {} to the map, with 1 if that "
      "is meant",
      (unnamed.size() == 1 ? "the class " : "the classes ") + quoted_classes(info, unnamed),
      unnamed.size() == 1 ? "it" : "them");
}

}  // namespace trainctl
