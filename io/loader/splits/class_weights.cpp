// Computes the weights of classes: counts classes, and finds them by name.
#include "io/loader/splits/class_weights.h"

#include <algorithm>
#include <charconv>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

std::string name_of_class(const DatasetInfo& info, std::int64_t number) {
  const bool named = static_cast<std::size_t>(number) < info.class_names.size();
  return named ? info.class_names[static_cast<std::size_t>(number)] : std::to_string(number);
}

std::vector<float> balanced(const SourceLocation& location, const Dataset& targets, const Subset& training) {
  const DatasetInfo& info = targets.info();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(info.classes));
  for (std::int64_t i = 0; i < training.size(); ++i) {
    const std::int32_t label = targets.label(training[i]);
    if (label >= 0 && label < info.classes) ++counts[static_cast<std::size_t>(label)];  // else the loss ignores it
  }
  std::vector<float> weights;
  for (std::int64_t c = 0; c < info.classes; ++c) {
    const std::int64_t count = counts[static_cast<std::size_t>(c)];
    if (count == 0) {
      throw Error(
          ErrorKind::config, location,
          format("class '{}' has no sample in the training split, so it cannot be balanced", name_of_class(info, c)),
          "set weights by class, or add samples of the class");
    }
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
  for (const auto& [name, weight] : *by_name) {
    const std::int64_t number = find_class(info, name);
    if (number < 0) {
      std::string hint = suggestion(name, info.class_names);
      if (hint.empty()) hint = format("; there are {} classes, numbered from 0", info.classes);
      throw Error(ErrorKind::config, declared.location, format("class_weights: there is no class '{}'{}", name, hint));
    }
    weights[static_cast<std::size_t>(number)] = static_cast<float>(weight);
  }
  return weights;
}

}  // namespace trainctl
