// Resolves a loss for the activation at the end of the network.
#include "core/metrics/loss.h"

#include <cmath>

#include "core/base/format.h"
#include "core/metrics/choices.h"
#include "core/metrics/output_expression.h"
#include "core/spec/values.h"

namespace trainctl {

template <>
struct EnumNames<FromLogits> {
  static constexpr EnumName<FromLogits> names[] = {
      {FromLogits::automatic, "auto"}, {FromLogits::yes, "true"}, {FromLogits::no, "false"}};
};

namespace {

constexpr const char* from_logits_meaning =
    "Whether the network's output is logits; auto checks whether the network ends in a softmax or sigmoid. Training "
    "never computes probabilities: the loss is computed from the logits before that activation.";

// The options of one loss rule; the rule's members are its keys.
template <class Rule>
struct LossRuleOptions final : LossOptions, Rule {
  LossRule rule() const override { return static_cast<const Rule&>(*this); }

  static Section section() {
    Keys<LossRuleOptions> keys(Rule::name, Rule::meaning);
    if constexpr (Rule::link != LossLink::identity) {
      std::move(keys).key("from_logits", &LossOptions::from_logits, from_logits_meaning);
    }
    if constexpr (Rule::targets == LossTargets::class_numbers && Rule::over != LossOver::sequences) {
      std::move(keys).key(
          "ignore_index", &LossOptions::ignore_index,
          "Targets with this number count neither in the loss nor in metrics: a class, such as that of padding, or a "
          "number that is no class, such as -100. PyTorch's ignore_index, Keras' ignore_class.",
          between(-2147483648.0, 2147483647.0));
    }
    Rule::options([&](const char* name, auto member, const char* meaning, const Range& range) {
      std::move(keys).key(name, member, meaning, range);
    });
    Section section = std::move(keys);
    if constexpr (requires { Rule::aliases; }) section.aliases.assign(Rule::aliases.begin(), Rule::aliases.end());
    return section;
  }
};

// The options of a loss that is an expression.
template <>
struct LossRuleOptions<ExpressionLoss> final : LossOptions, OutputExpression {
  LossRule rule() const override { return ExpressionLoss{}; }
  std::shared_ptr<const OutputExpression> expression() const override {
    return std::make_shared<OutputExpression>(*this);
  }

  static Section section() {
    return Keys<LossRuleOptions>(ExpressionLoss::name, ExpressionLoss::meaning)
        .required("expression", &LossRuleOptions::text, "For example: mean(maximum(0, margin - y_true * y_pred)).")
        .rest("any other name", &LossRuleOptions::constants, "A number that the expression uses by this name.")
        .check([](const LossRuleOptions& options, const Node&, Reader& reader) {
          options.OutputExpression::check(reader);
        });
  }
};

// The options of an output without a loss.
struct NoLossOptions final : LossOptions {
  LossRule rule() const override { return ExpressionLoss{}; }
  bool trains() const override { return false; }
};

Section no_loss_section() {
  return Keys<NoLossOptions>("none",
                             "No loss, like Keras' None: added losses (model.add_loss) or other outputs train the "
                             "layers before this output. It has no metrics, and needs no targets in the data unless an "
                             "added loss reads them.");
}

template <class... Rules>
std::vector<Section> loss_sections(const std::variant<Rules...>*) {
  return {LossRuleOptions<Rules>::section()..., no_loss_section()};
}

std::string_view text(FinalActivation activation) {
  return activation == FinalActivation::softmax   ? "softmax"
         : activation == FinalActivation::sigmoid ? "sigmoid"
                                                  : "none";
}

}  // namespace

const ChoiceTable& loss_choices() {
  static const ChoiceTable table{"loss", loss_sections(static_cast<const LossRule*>(nullptr))};
  return table;
}

ResolvedLoss resolve_loss(const Choice& choice, FinalActivation network, Reader& reader) {
  const auto& options = choice.as<LossOptions>();
  ResolvedLoss loss{options.rule(), FinalActivation::none, choice.location};
  loss.expression = options.expression();
  loss.is_none = !options.trains();
  if (options.ignore_index) loss.ignore_index = static_cast<std::int32_t>(*options.ignore_index);
  const LossLink link = link_of(loss.rule);
  if (link == LossLink::identity || options.from_logits == FromLogits::yes) return loss;

  const auto expected = link == LossLink::sigmoid ? FinalActivation::sigmoid : FinalActivation::softmax;
  if (network == FinalActivation::none) {
    if (options.from_logits == FromLogits::no) {
      reader.error(choice.location, format("{} with from_logits: false needs probabilities, but the network does not "
                                           "end in a {}: add one, or leave from_logits out",
                                           choice.name, text(expected)));
    }
  } else if (network != expected) {
    reader.error(
        choice.location,
        format("{} needs a {} at the end of the network, not a {}; {}", choice.name, text(expected), text(network),
               link == LossLink::sigmoid ? "for classes that exclude each other use sparse_categorical_crossentropy"
                                         : "for one output, or classes that occur together, use binary_crossentropy"));
  } else {
    loss.folded = network;
  }
  return loss;
}

LossRule of_probabilities(const LossRule& rule) {
  if (const auto* sparse = std::get_if<SparseCategoricalCrossentropy>(&rule)) {
    return CategoricalCrossentropy{static_cast<const SoftmaxCrossentropy&>(*sparse)};
  }
  if (const auto* sparse = std::get_if<SparseCategoricalFocalCrossentropy>(&rule)) {
    return CategoricalFocalCrossentropy{static_cast<const SoftmaxFocalCrossentropy&>(*sparse)};
  }
  return rule;
}

double chance_loss(const LossRule& loss, const Shape& output) {
  if (output.rank() != 2) return 0;
  return std::visit([&](const auto& rule) { return rule.chance(output[1]); }, loss);
}

}  // namespace trainctl
