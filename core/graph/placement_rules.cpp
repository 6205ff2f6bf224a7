// Applies placement rules.
#include "core/graph/placement_rules.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// The number of dimensions that the rule names for one tensor.
std::size_t dimensions(const std::string& tensor) { return std::min(tensor.find_first_of("+|"), tensor.size()); }

// The placement of the tensor if the ranks split the dimension `letter`; letter 0 means that they split no dimension.
Placement placement_of(const std::string& tensor, char letter) {
  const std::size_t at = letter == 0 ? std::string::npos : tensor.find(letter);
  if (at == std::string::npos) return replicated;
  if (at < dimensions(tensor)) return split_along(static_cast<int>(at));
  return at < tensor.find('|') ? partial : varying;
}

// A 0, then the letters of all inputs: the dimensions that the ranks may split.
std::string letters(const PlacementRule& rule) {
  std::string found(1, '\0');
  for (const std::string& input : rule.inputs) {
    for (const char letter : input) {
      if (std::isalpha(static_cast<unsigned char>(letter)) && found.find(letter) == std::string::npos) found += letter;
    }
  }
  return found;
}

// The index of the first input with a placement other than placement_of() for the letter; the number of inputs if all
// placements match.
std::size_t mismatch(const PlacementRule& rule, std::span<const Placement> inputs, char letter) {
  std::size_t i = 0;
  while (i < inputs.size() && inputs[i] == placement_of(rule.inputs[i], letter)) ++i;
  return i;
}

std::size_t matches(const PlacementRule& rule, std::span<const Placement> inputs, char letter) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) count += inputs[i] == placement_of(rule.inputs[i], letter);
  return count;
}

// The reason why no letter fits: the placement of one input is never possible, or the placements of two inputs do not
// fit together.
std::string problem_of(const PlacementRule& rule, const PlacementQuery& query) {
  const std::span<const Placement> inputs = query.inputs;
  const auto given = std::find_if(inputs.begin(), inputs.end(), [](const Placement& p) { return p != replicated; });
  const auto k = static_cast<std::size_t>(given - inputs.begin());
  char best = 0;
  for (const char letter : letters(rule)) {
    if (letter == 0 || placement_of(rule.inputs[k], letter) != *given) continue;
    if (best == 0 || matches(rule, inputs, letter) > matches(rule, inputs, best)) best = letter;
  }
  if (best == 0) return format("{} cannot be {}", query.input_name(k), to_string(*given));
  const std::size_t other = mismatch(rule, inputs, best);
  return format("{} is {} where {} is {}", query.input_name(other), to_string(inputs[other]), query.input_name(k),
                to_string(*given));
}

// Returns a letter for each dimension: "abc" for three dimensions.
std::string letters_for(std::int64_t rank) {
  std::string result;
  for (std::int64_t i = 0; i < rank; ++i) result += static_cast<char>('a' + i);
  return result;
}

}  // namespace

OutputPlacements place_by(const PlacementRule& rule, const PlacementQuery& query) {
  require(rule.inputs.size() == query.inputs.size(), "a placement rule does not name every input");
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    require(static_cast<std::int64_t>(dimensions(rule.inputs[i])) == query.input_types[i].shape.rank(),
            format("a placement rule does not name every dimension: {}", rule.inputs[i]));
  }
  for (const char letter : letters(rule)) {
    if (mismatch(rule, query.inputs, letter) != query.inputs.size()) continue;
    OutputPlacements result;
    for (const std::string& output : rule.outputs) result.outputs.push_back(placement_of(output, letter));
    return result;
  }
  return {{}, problem_of(rule, query)};
}

OutputPlacements kept(OutputPlacements result, const PlacementQuery& query, std::size_t first, std::size_t end) {
  if (!result.problem.empty() || query.held.empty()) return result;
  for (std::size_t i = first; i < end; ++i) {
    const std::optional<Placement>& held = query.held[i];
    if (held == result.outputs[i]) continue;
    const std::string name = query.output_name(i);
    if (!held) return {{}, format("an op adds to {} before any op writes it", name)};
    return {
        {},
        format("{} is {}, but the values added to it are {}", name, to_string(*held), to_string(result.outputs[i]))};
  }
  return result;
}

OutputPlacements kept_if(bool accumulate, OutputPlacements result, const PlacementQuery& query) {
  const std::size_t outputs = result.outputs.size();
  return accumulate ? kept(std::move(result), query, 0, outputs) : result;
}

std::string every_dimension(const TensorType& type) { return letters_for(type.shape.rank()); }

std::string none_split(const TensorType& type) { return std::string(static_cast<std::size_t>(type.shape.rank()), '.'); }

std::string rows(const TensorType& type) { return letters_for(type.shape.rank() - 1); }

std::string samples(const TensorType& type) {
  return "a" + std::string(static_cast<std::size_t>(type.shape.rank() - 1), '.');
}

std::string samples_and_channels(const TensorType& type) {
  std::string result = samples(type);
  result.back() = 'c';
  return result;
}

OutputPlacements place_elementwise(const PlacementQuery& query, const std::vector<std::size_t>& linear) {
  const std::string all = every_dimension(query.input_types[0]);
  PlacementRule rule{std::vector<std::string>(query.inputs.size(), all), {linear.empty() ? all : all + "+S"}};
  for (const std::size_t input : linear) rule.inputs[input] += "+S";
  return place_by(rule, query);
}

OutputPlacements place_rows(const PlacementQuery& query, bool linear) {
  const std::string row = rows(query.input_types[0]) + (linear ? ".+S" : ".");
  return place_by({{row}, std::vector<std::string>(query.output_types.size(), row)}, query);
}

}  // namespace trainctl
