// Resolves metrics for the loss.
#include "core/metrics/metric.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/layers/model/names.h"
#include "core/metrics/choices.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

// The options of one metric rule; the rule's members are its keys.
template <class Rule>
struct MetricRuleOptions final : MetricOptions, Rule {
  std::optional<MetricRule> rule() const override { return static_cast<const Rule&>(*this); }

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

// Reports a name that is no word, or that is the name of another result.
void check_name(const MetricExpression& metric, Reader& reader) {
  const std::string& name = metric.name.value;
  const auto fail = [&](const std::string& why) { reader.error(metric.name.location, why); };
  if (!is_name(name)) {
    fail(format("'{}' is no name of a metric: use letters, digits, '_', '-' and '.'", name));
  } else if (name == "loss" || metric_choices().find(name) != nullptr) {
    fail(format("'{}' is the name of another result: give the metric a name of its own", name));
  } else if (name.starts_with("val_")) {
    fail(format("'{}': names with val_ are those of values on validation data; leave val_ out", name));
  }
}

// The options of a metric that is an expression.
template <>
struct MetricRuleOptions<ExpressionMetric> final : MetricOptions, MetricExpression {
  std::optional<MetricRule> rule() const override { return ExpressionMetric{}; }
  std::shared_ptr<const MetricExpression> expression() const override {
    return std::make_shared<MetricExpression>(*this);
  }

  static Section section() {
    return Keys<MetricRuleOptions>(ExpressionMetric::name, ExpressionMetric::meaning)
        .required("name", &MetricRuleOptions::name, "The name of the result, such as within_one.")
        .required("expression", &MetricRuleOptions::text, "For example: mean(abs(y_true - y_pred) <= tolerance).")
        .key("mode", &MetricRuleOptions::mode,
             "Whether smaller (min) or greater (max) is better: for checkpoints and early stopping that monitor the "
             "metric and have no `mode` of their own, and for the thresholds of `eval`.")
        .rest("any other name", &MetricRuleOptions::constants, "A number that the expression uses by this name.")
        .check([](const MetricRuleOptions& options, const Node&, Reader& reader) {
          check_name(options, reader);
          options.OutputExpression::check(reader);
        });
  }
};

struct PerplexityOptions final : MetricOptions {
  std::optional<MetricRule> rule() const override { return std::nullopt; }
};

Section perplexity_section() {
  return Keys<PerplexityOptions>("perplexity",
                                 "e to the power of the mean cross-entropy of the classes, which for a language model "
                                 "are the next tokens; label_smoothing and z_loss do not count. Needs the loss "
                                 "sparse_categorical_crossentropy or categorical_crossentropy.");
}

struct BitsPerByteOptions final : MetricOptions {
  std::optional<MetricRule> rule() const override { return std::nullopt; }
};

Section bits_per_byte_section() {
  return Keys<BitsPerByteOptions>(
      "bits_per_byte",
      "The loss of a language model in bits for each byte of text, by which networks with different tokenizers can be "
      "compared: the sum of the cross-entropies of all tokens that count, without label_smoothing and z_loss, divided "
      "by ln 2 and by the bytes of text for which these tokens stand. Special tokens, such as the end of a document, "
      "have a loss but stand for no text. Needs the data set text, with a known tokenizer, and the loss "
      "sparse_categorical_crossentropy.");
}

template <class... Rules>
std::vector<Section> metric_sections(const std::variant<Rules...>*) {
  return {MetricRuleOptions<Rules>::section()..., perplexity_section(), bits_per_byte_section()};
}

template <class Options>
const Choice* find_metric(const std::vector<Choice>& choices) {
  const auto found = std::find_if(choices.begin(), choices.end(), [](const Choice& choice) {
    return dynamic_cast<const Options*>(choice.options.get()) != nullptr;
  });
  return found == choices.end() ? nullptr : &*found;
}

template <class Rule>
constexpr bool is_crossentropy =
    std::is_same_v<Rule, SparseCategoricalCrossentropy> || std::is_same_v<Rule, CategoricalCrossentropy>;

// Reports a loss that is not the cross-entropy of classes, which the metric `name` needs.
void check_crossentropy(const char* name, const Choice& metric, const ResolvedLoss& loss, Reader& reader) {
  if (std::visit([]<class Rule>(const Rule&) { return is_crossentropy<Rule>; }, loss.rule)) return;
  reader.error(metric.location,
               format("{} needs the loss sparse_categorical_crossentropy or categorical_crossentropy", name));
}

void report_repeated(const std::vector<Choice>& choices, Reader& reader) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::string name = result_name(choices[i]);
    const auto same = [&](const Choice& other) { return result_name(other) == name; };
    if (std::any_of(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      reader.error(choices[i].location, format("metric {} is given twice", name));
    }
  }
}

}  // namespace

const ChoiceTable& metric_choices() {
  static const ChoiceTable table{"metric", metric_sections(static_cast<const MetricRule*>(nullptr))};
  return table;
}

std::string result_name(const Choice& metric) {
  const auto expression = metric.as<MetricOptions>().expression();
  return expression != nullptr ? expression->name.value : metric.name;
}

std::vector<ResolvedMetric> resolve_metrics(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                            const Shape& output, Reader& reader) {
  MetricSetting setting{targets_of(loss.rule), link_of(loss.rule), loss.folded != FinalActivation::none, output.back()};
  const auto* ctc = std::get_if<Ctc>(&loss.rule);
  if (ctc != nullptr) setting.mask_index = ctc->mask_index;
  report_repeated(choices, reader);
  std::vector<ResolvedMetric> metrics;
  for (const Choice& choice : choices) {
    const auto& options = choice.as<MetricOptions>();
    if (!options.rule()) continue;  // it follows from the loss
    ResolvedMetric metric{result_name(choice), *options.rule(), false, choice.location, options.expression()};
    if (is_over_sequences(metric.rule) != (ctc != nullptr)) {
      reader.error(choice.location,
                   ctc ? format("{} compares single classes or values, but the loss ctc has sequences as targets: use "
                                "edit_distance or sequence_accuracy",
                                choice.name)
                       : format("{} compares sequences, which needs the loss ctc", choice.name));
      continue;
    }
    std::visit(
        [&](auto& rule) {
          const std::string problem = rule.adapt(setting);
          if (!problem.empty()) reader.error(choice.location, problem);
          metric.of_predictions = rule.of_predictions(setting);
        },
        metric.rule);
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

bool wants_perplexity(const std::vector<Choice>& choices, const ResolvedLoss& loss, Reader& reader) {
  const Choice* const found = find_metric<PerplexityOptions>(choices);
  if (found != nullptr) check_crossentropy("perplexity", *found, loss, reader);
  return found != nullptr;
}

ByteCounts bytes_for_bits_per_byte(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                   const TargetInfo& targets, Reader& reader) {
  const Choice* const found = find_metric<BitsPerByteOptions>(choices);
  if (found == nullptr) return nullptr;
  if (targets_of(loss.rule) != LossTargets::class_numbers) {
    reader.error(found->location, "bits_per_byte needs the loss sparse_categorical_crossentropy");
    return nullptr;
  }
  check_crossentropy("bits_per_byte", *found, loss, reader);
  if (targets.token_bytes) return targets.token_bytes();
  reader.error(
      found->location,
      "bits_per_byte needs tokens as targets whose text is known: use the data set `text`, with `tokenizer` if "
      "its files hold tokens");
  return nullptr;
}

std::optional<LossRule> crossentropy_without_terms(const LossRule& loss) {
  return std::visit(
      []<class Rule>(Rule rule) -> std::optional<LossRule> {
        if constexpr (is_crossentropy<Rule>) {
          if (rule.label_smoothing == 0 && rule.z_loss == 0) return std::nullopt;
          rule.label_smoothing = rule.z_loss = 0;
          return rule;
        } else {
          return std::nullopt;
        }
      },
      loss);
}

}  // namespace trainctl
