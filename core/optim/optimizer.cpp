// The options of all optimizers, made from their rules.
#include "core/optim/optimizer.h"

#include <fnmatch.h>

#include <algorithm>

#include "core/base/format.h"
#include "core/optim/choices.h"
#include "core/spec/values.h"

namespace trainctl {

template <>
struct EnumNames<DecayExclusion> {
  static constexpr EnumName<DecayExclusion> names[] = {{DecayExclusion::none, "none"},
                                                       {DecayExclusion::biases_and_norms, "biases_and_norms"}};
};

namespace {

bool matches(const Located<std::string>& pattern, const std::string& name) {
  return fnmatch(pattern.value.c_str(), name.c_str(), 0) == 0;
}

// Whether the pattern names the parameter's layer, or a block that contains it.
bool names_layer_of(const Located<std::string>& pattern, std::string parameter) {
  for (std::size_t slash = parameter.rfind('/'); slash != std::string::npos; slash = parameter.rfind('/')) {
    parameter.resize(slash);
    if (matches(pattern, parameter)) return true;
  }
  return false;
}

// Reports the patterns that match none of the names.
template <class Matches>
void check(const char* key, const char* what, const NamePatterns& patterns, const std::vector<std::string>& names,
           const Matches& is_match, Reader& reader) {
  for (const Located<std::string>& pattern : patterns) {
    const auto fits = [&](const std::string& name) { return is_match(pattern, name); };
    if (std::any_of(names.begin(), names.end(), fits)) continue;
    reader.error(pattern.location, format("{}: no {} is named '{}'", key, what, pattern.value));
  }
}

// The further options of a rule that orthogonalizes the steps of matrices.
struct OrthogonalOptions {
  NamePatterns exclude_layers;
  bool exclude_embeddings = true;

  bool excludes(const std::string& parameter) const {
    return (exclude_embeddings && parameter.find("embedding") != std::string::npos) ||
           std::any_of(exclude_layers.begin(), exclude_layers.end(),
                       [&](const auto& pattern) { return names_layer_of(pattern, parameter); });
  }
};
struct NoOptions {};
template <class Rule>
using FurtherOptions = std::conditional_t<OrthogonalRule<Rule>, OrthogonalOptions, NoOptions>;

// The options of one optimizer rule; the rule's members are its keys.
template <class Rule>
struct RuleOptions final : OptimizerOptions, Rule, FurtherOptions<Rule> {
  RuleOptions() {
    OptimizerOptions::learning_rate = Rule::learning_rate;
    OptimizerOptions::weight_decay = Rule::weight_decay;
  }
  OptimizerRule rule() const override { return static_cast<const Rule&>(*this); }
  bool orthogonalizes(const std::string& name, const Shape& shape) const override {
    if constexpr (OrthogonalRule<Rule>) return shape.rank() == 2 && !this->excludes(name);
    return false;
  }
  void check_patterns(const std::vector<std::string>& names, Reader& reader) const override {
    OptimizerOptions::check_patterns(names, reader);
    if constexpr (OrthogonalRule<Rule>) {
      check("exclude_layers", "layer with parameters", this->exclude_layers, names, names_layer_of, reader);
    }
  }

  static Section section() {
    Keys<RuleOptions> keys(Rule::name, Rule::meaning);
    std::move(keys)
        .key("learning_rate", &OptimizerOptions::learning_rate, "Learning rate, before the schedule.", at_least(0))
        .key("weight_decay", &OptimizerOptions::weight_decay, Rule::decay_meaning, at_least(0))
        .key("exclude_from_weight_decay", &OptimizerOptions::exclude_from_weight_decay,
             "The parameters that weight decay does not change: those of biases and norms, or a list of patterns of "
             "parameters' names, such as `*/bias` or `head/*`.")
        .key("clipnorm", &OptimizerOptions::clipnorm,
             "The gradient of each parameter is scaled down if its own norm is larger than this.", more_than(0))
        .key("global_clipnorm", &OptimizerOptions::global_clipnorm,
             "All gradients are scaled down if their norm over all parameters is larger than this, like "
             "train.clip_norm.",
             more_than(0))
        .key("clipvalue", &OptimizerOptions::clipvalue,
             "Each element of the gradients is limited to the range from -clipvalue to clipvalue.", more_than(0))
        .key("gradient_centralization", &OptimizerOptions::gradient_centralization,
             "Whether the gradient of each parameter with several dimensions gets zero means over all dimensions but "
             "the last, before it is clipped (Yong et al., 2020).")
        .exclusive({"clipnorm", "global_clipnorm", "clipvalue"});
    Rule::options([&](const char* name, auto member, const char* meaning, const Range& range) {
      std::move(keys).key(name, member, meaning, range);
    });
    if constexpr (OrthogonalRule<Rule>) {
      std::move(keys)
          .key("exclude_layers", &RuleOptions::exclude_layers,
               "Patterns of the names of layers or blocks whose matrices take the steps of adamw; name the last dense "
               "layer here.")
          .key("exclude_embeddings", &RuleOptions::exclude_embeddings,
               "Whether parameters with `embedding` in their names take the steps of adamw.");
    }
    Section section = std::move(keys);
    return section;
  }
};

template <class... Rules>
std::vector<Section> sections(const std::variant<Rules...>*) {
  return {RuleOptions<Rules>::section()...};
}

}  // namespace

bool OptimizerOptions::decays(const std::string& name, bool plain) const {
  const auto* patterns = std::get_if<NamePatterns>(&exclude_from_weight_decay);
  if (patterns == nullptr) {
    return plain || std::get<DecayExclusion>(exclude_from_weight_decay) == DecayExclusion::none;
  }
  return std::none_of(patterns->begin(), patterns->end(), [&](const auto& pattern) { return matches(pattern, name); });
}

void OptimizerOptions::check_patterns(const std::vector<std::string>& names, Reader& reader) const {
  const auto* patterns = std::get_if<NamePatterns>(&exclude_from_weight_decay);
  if (patterns != nullptr) check("exclude_from_weight_decay", "parameter", *patterns, names, matches, reader);
}

bool OptimizerOptions::by_parameter() const {
  return std::visit([](const auto& rule) { return rule.by_parameter; }, rule());
}

std::shared_ptr<const OptimizerUpdate> OptimizerOptions::update(std::vector<UpdateRange> ranges,
                                                                double clip_norm) const {
  auto update = std::make_shared<OptimizerUpdate>(rule());
  update->ranges = std::move(ranges);
  update->clip_norm = static_cast<float>(clip_norm);
  update->weight_decay = static_cast<float>(weight_decay);
  return update;
}

const ChoiceTable& optimizer_choices() {
  static const ChoiceTable table{"optimizer", sections(static_cast<const OptimizerRule*>(nullptr))};
  return table;
}

}  // namespace trainctl
