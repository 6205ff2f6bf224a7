// From a loss to the meaning of outputs.
#include "cmd/predict/meaning.h"

#include <algorithm>
#include <cmath>

#include "core/metrics/loss.h"

namespace trainctl {
namespace {

LossRule loss_rule(const RunSpec& spec, std::size_t output) {
  return spec.train.loss.of(output_names(spec.model)[output]).as<LossOptions>().rule();
}

bool is_of_classes(const LossRule& rule) {
  const LossTargets targets = std::visit([](const auto& r) { return r.targets; }, rule);
  return targets == LossTargets::class_numbers || targets == LossTargets::distributions;
}

}  // namespace

FinalActivation missing_activation(const RunSpec& spec, std::size_t output) {
  const LossRule rule = loss_rule(spec, output);
  const bool links = std::visit([](const auto& r) { return r.link != LossLink::identity; }, rule);
  if (!links || final_activation(spec.model, output) != FinalActivation::none) return FinalActivation::none;
  return is_of_classes(rule) ? FinalActivation::softmax : FinalActivation::sigmoid;
}

OutputMeaning meaning_of(const RunSpec& spec, std::int64_t outputs, const std::vector<std::string>& class_names) {
  const LossRule rule = loss_rule(spec, 0);
  const LossTargets targets = std::visit([](const auto& r) { return r.targets; }, rule);
  OutputMeaning meaning;
  if (is_of_classes(rule) && outputs > 1) meaning.kind = OutputMeaning::Kind::classes;
  if (targets == LossTargets::labels && outputs == 1) meaning.kind = OutputMeaning::Kind::yes_or_no;
  meaning.missing = missing_activation(spec, 0);
  const bool yes_or_no = meaning.kind == OutputMeaning::Kind::yes_or_no;
  const std::int64_t names = yes_or_no ? 2 : outputs;
  meaning.names = class_names;
  if (std::ssize(class_names) == names && meaning.kind != OutputMeaning::Kind::values) return meaning;
  meaning.names.clear();
  if (yes_or_no) {
    meaning.names = {"no", "yes"};
  } else {
    const std::string prefix = meaning.kind == OutputMeaning::Kind::classes ? "" : "value_";
    for (std::int64_t k = 0; k < names; ++k) meaning.names.push_back(prefix + std::to_string(k));
    if (names == 1) meaning.names = {"value"};
  }
  return meaning;
}

std::vector<float> OutputMeaning::values_of(std::span<const float> outputs) const {
  std::vector<float> values(outputs.begin(), outputs.end());
  if (missing == FinalActivation::sigmoid) {
    for (float& value : values) value = 1 / (1 + std::exp(-value));
  }
  if (missing == FinalActivation::softmax) {
    const float largest = *std::max_element(values.begin(), values.end());
    float sum = 0;
    for (float& value : values) sum += value = std::exp(value - largest);
    for (float& value : values) value /= sum;
  }
  if (kind == Kind::yes_or_no) values = {1 - values[0], values[0]};
  return values;
}

}  // namespace trainctl
