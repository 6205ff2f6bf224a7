// Loss choices, and how they meet the network's output.
#include "core/metrics/loss.h"

#include <cmath>

#include "core/base/format.h"
#include "core/spec/values.h"

namespace trainctl {

template <>
struct EnumNames<FromLogits> {
  static constexpr EnumName<FromLogits> names[] = {
      {FromLogits::automatic, "auto"}, {FromLogits::yes, "true"}, {FromLogits::no, "false"}};
};

namespace {

constexpr const char* from_logits_meaning =
    "Whether the network's output is logits; auto looks whether it ends in a softmax or sigmoid. Probabilities are "
    "never "
    "formed in training: the loss is computed from the logits in front of them.";

template <LossKind loss>
struct CategoricalOptions final : LossOptions {
  FromLogits from_logits = FromLogits::automatic;
  double label_smoothing = 0;

  LossKind kind() const override { return loss; }
  FromLogits logits() const override { return from_logits; }
  double smoothing() const override { return label_smoothing; }

  static Keys<CategoricalOptions> keys(const char* meaning) {
    return Keys<CategoricalOptions>(std::string(name_of(loss)), meaning)
        .key("from_logits", &CategoricalOptions::from_logits, from_logits_meaning)
        .key("label_smoothing", &CategoricalOptions::label_smoothing,
             "Share of the target that is spread evenly over all classes.", from_zero_to_below(1));
  }
};

struct BinaryOptions final : LossOptions {
  FromLogits from_logits = FromLogits::automatic;

  LossKind kind() const override { return LossKind::binary_crossentropy; }
  FromLogits logits() const override { return from_logits; }

  static Keys<BinaryOptions> keys() {
    return Keys<BinaryOptions>("binary_crossentropy",
                               "Cross-entropy of independent yes-or-no outputs, their mean. With one output the "
                               "classes 0 and 1 are its "
                               "targets, with an output for each class class numbers become one-hot.")
        .key("from_logits", &BinaryOptions::from_logits, from_logits_meaning);
  }
};

struct SquaredErrorOptions final : LossOptions {
  LossKind kind() const override { return LossKind::mean_squared_error; }

  static Keys<SquaredErrorOptions> keys() {
    return Keys<SquaredErrorOptions>(
        "mean_squared_error",
        "Mean of the squared differences from target values. Whole numbers in arrays are values too, "
        "unless data.classes is stated; class numbers become one-hot where the network has an "
        "output for each class, and are the values themselves where it has one output.");
  }
};

std::string_view text(FinalActivation activation) {
  return activation == FinalActivation::softmax   ? "softmax"
         : activation == FinalActivation::sigmoid ? "sigmoid"
                                                  : "none";
}

}  // namespace

const ChoiceTable& loss_choices() {
  static const ChoiceTable table{
      "loss",
      {CategoricalOptions<LossKind::sparse_categorical_crossentropy>::keys(
           "Cross-entropy over classes; targets are class numbers."),
       CategoricalOptions<LossKind::categorical_crossentropy>::keys(
           "Cross-entropy over classes; targets are probabilities: class numbers become one-hot."),
       BinaryOptions::keys(), SquaredErrorOptions::keys()}};
  return table;
}

ResolvedLoss resolve_loss(const Choice& choice, FinalActivation network, Reader& reader) {
  const auto& options = choice.as<LossOptions>();
  ResolvedLoss loss{options.kind(), static_cast<float>(options.smoothing()), FinalActivation::none, choice.place};
  if (loss.kind == LossKind::mean_squared_error || options.logits() == FromLogits::yes) return loss;

  const auto expected =
      loss.kind == LossKind::binary_crossentropy ? FinalActivation::sigmoid : FinalActivation::softmax;
  if (network == FinalActivation::none) {
    if (options.logits() == FromLogits::no) {
      reader.error(choice.place,
                   format("{} with from_logits: false takes probabilities, but the network does not end in "
                          "a {}: add one, or leave from_logits out",
                          choice.name, text(expected)));
    }
  } else if (network != expected) {
    reader.error(choice.place, format("{} goes with a {} at the end of the network, not with a {}", choice.name,
                                      text(expected), text(network)));
  } else {
    loss.folded = network;
  }
  return loss;
}

double chance_loss(LossKind loss, const Shape& output) {
  if (loss == LossKind::mean_squared_error || output.rank() != 2) return 0;
  return std::log(loss == LossKind::binary_crossentropy ? 2.0 : static_cast<double>(output[1]));
}

}  // namespace trainctl
