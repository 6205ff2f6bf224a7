// The options of all optimizers, made from their rules.
#include "core/optim/optimizer.h"

#include "core/optim/choices.h"
#include "core/spec/values.h"

namespace trainctl {

template <>
struct EnumNames<DecayExclusion> {
  static constexpr EnumName<DecayExclusion> names[] = {{DecayExclusion::none, "none"},
                                                       {DecayExclusion::biases_and_norms, "biases_and_norms"}};
};

namespace {

// The options of one optimizer rule; the rule's members are its keys.
template <class Rule>
struct RuleOptions final : OptimizerOptions, Rule {
  RuleOptions() {
    OptimizerOptions::learning_rate = Rule::learning_rate;
    OptimizerOptions::weight_decay = Rule::weight_decay;
  }
  OptimizerRule rule() const override { return static_cast<const Rule&>(*this); }

  static Section section() {
    Keys<RuleOptions> keys(Rule::name, Rule::meaning);
    std::move(keys)
        .key("learning_rate", &OptimizerOptions::learning_rate, "Learning rate, before the schedule.", at_least(0))
        .key("weight_decay", &OptimizerOptions::weight_decay, Rule::decay_meaning, at_least(0))
        .key("exclude_from_weight_decay", &OptimizerOptions::exclude_from_weight_decay,
             "The parameters that weight decay does not change.");
    Rule::options([&](const char* name, auto member, const char* meaning, const Range& range) {
      std::move(keys).key(name, member, meaning, range);
    });
    Section section = std::move(keys);
    return section;
  }
};

template <class... Rules>
std::vector<Section> sections(const std::variant<Rules...>*) {
  return {RuleOptions<Rules>::section()...};
}

}  // namespace

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
