// Resolves metrics for the loss.
#include "core/metrics/metric.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/metrics/choices.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

// The options of one metric rule; the rule's members are its keys.
template <class Rule>
struct MetricRuleOptions final : MetricOptions, Rule {
  MetricRule rule() const override { return static_cast<const Rule&>(*this); }

  static Section section() {
    Keys<MetricRuleOptions> keys(Rule::name, Rule::meaning);
    Rule::options([&](const char* name, auto member, const char* meaning, const Range& range) {
      std::move(keys).key(name, member, meaning, range);
    });
    Section section = std::move(keys);
    if constexpr (requires { Rule::aliases; }) section.aliases.assign(Rule::aliases.begin(), Rule::aliases.end());
    return section;
  }
};

template <class... Rules>
std::vector<Section> metric_sections(const std::variant<Rules...>*) {
  return {MetricRuleOptions<Rules>::section()...};
}

}  // namespace

const ChoiceTable& metric_choices() {
  static const ChoiceTable table{"metric", metric_sections(static_cast<const MetricRule*>(nullptr))};
  return table;
}

std::vector<ResolvedMetric> resolve_metrics(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                            const Shape& output, Reader& reader) {
  const MetricSetting setting{targets_of(loss.rule), link_of(loss.rule), loss.folded != FinalActivation::none,
                              output.back()};
  std::vector<ResolvedMetric> metrics;
  for (const Choice& choice : choices) {
    ResolvedMetric metric{choice.name, choice.as<MetricOptions>().rule(), false, choice.location};
    std::visit(
        [&](auto& rule) {
          const std::string problem = rule.adapt(setting);
          if (!problem.empty()) reader.error(choice.location, problem);
          metric.of_predictions = rule.of_predictions(setting);
        },
        metric.rule);
    const bool repeated = std::any_of(metrics.begin(), metrics.end(),
                                      [&](const ResolvedMetric& other) { return other.name == metric.name; });
    if (repeated) reader.error(choice.location, format("metric {} is given twice", choice.name));
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

}  // namespace trainctl
