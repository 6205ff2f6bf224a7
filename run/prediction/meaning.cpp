// Derives the meaning of outputs from their losses.
#include "run/prediction/meaning.h"

#include <algorithm>
#include <cmath>

#include "core/metrics/loss.h"
#include "run/run_spec.h"

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
  if (is_over_sequences(rule)) return FinalActivation::none;  // decoding reads logits and probabilities alike
  const bool links = std::visit([](const auto& r) { return r.link != LossLink::identity; }, rule);
  if (!links || final_activation(spec.model, output) != FinalActivation::none) return FinalActivation::none;
  return is_of_classes(rule) ? FinalActivation::softmax : FinalActivation::sigmoid;
}

namespace {

// The sizes before the last one.
Shape without_back(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.sizes().begin(), shape.sizes().end() - 1));
}

// The names of values by their indices: value_0, value_1; of sequences value_0_0, value_0_1.
std::vector<std::string> names_of_values(const Shape& shape) {
  if (shape.count() == 1) return {"value"};
  std::vector<std::string> names{"value"};
  for (const std::int64_t size : shape.sizes()) {
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (std::int64_t k = 0; k < size; ++k) longer.push_back(name + "_" + std::to_string(k));
    }
    names = std::move(longer);
  }
  return names;
}

}  // namespace

OutputMeaning meaning_of(const RunSpec& spec, std::size_t output, const Shape& sample,
                         const std::vector<std::string>& class_names) {
  const LossRule rule = loss_rule(spec, output);
  const LossTargets targets = std::visit([](const auto& r) { return r.targets; }, rule);
  const std::int64_t last = sample.back();
  const bool is_free = !spec.train.loss.of(output_names(spec.model)[output]).as<LossOptions>().trains();
  const bool excludes =
      (targets == LossTargets::labels || is_free) && final_activation(spec.model, output) == FinalActivation::softmax;
  OutputMeaning meaning;
  meaning.output = output_names(spec.model)[output];
  meaning.values = sample;
  meaning.missing = missing_activation(spec, output);
  if ((is_of_classes(rule) || excludes) && last > 1) meaning.kind = OutputMeaning::Kind::classes;
  const bool answers = targets == LossTargets::labels && link_of(rule) == LossLink::sigmoid;
  if (answers && last == 1) meaning.kind = OutputMeaning::Kind::yes_or_no;
  if (!meaning.has_classes()) {
    if (sample.rank() < 3) meaning.names = names_of_values(sample);
    return meaning;
  }
  const bool yes_or_no = meaning.kind == OutputMeaning::Kind::yes_or_no;
  const std::int64_t classes = yes_or_no ? 2 : last;
  meaning.positions = without_back(sample);
  meaning.values = sample.with_back(classes);
  if (const auto* ctc = std::get_if<Ctc>(&rule)) {
    meaning.kind = OutputMeaning::Kind::decoded;
    meaning.mask_index = ctc->mask_index;
  }
  meaning.names = class_names;
  if (std::ssize(class_names) == classes) return meaning;
  meaning.names.clear();
  meaning.separator = " ";
  if (yes_or_no) {
    meaning.names = {"no", "yes"};
  } else {
    for (std::int64_t k = 0; k < classes; ++k) meaning.names.push_back(std::to_string(k));
  }
  return meaning;
}

bool OutputMeaning::is_mask() const {
  constexpr std::size_t max_classes = 256;  // values of a byte
  return has_classes() && positions.rank() == 2 && names.size() <= max_classes;
}

bool OutputMeaning::is_image() const {
  return !has_classes() && values.rank() == 3 && (values.back() == 1 || values.back() == 3);
}

std::vector<float> OutputMeaning::values_of(std::span<const float> outputs) const {
  std::vector<float> all(outputs.begin(), outputs.end());
  if (missing == FinalActivation::sigmoid) {
    for (float& value : all) value = 1 / (1 + std::exp(-value));
  }
  if (missing == FinalActivation::softmax) {
    const std::ptrdiff_t last = values.back();
    for (auto row = all.begin(); row != all.end(); row += last) {
      const float largest = *std::max_element(row, row + last);
      float sum = 0;
      for (auto value = row; value != row + last; ++value) sum += * value = std::exp(*value - largest);
      for (auto value = row; value != row + last; ++value) *value /= sum;
    }
  }
  if (kind != Kind::yes_or_no) return all;
  std::vector<float> both;
  for (const float yes : all) {
    both.push_back(1 - yes);
    both.push_back(yes);
  }
  return both;
}

}  // namespace trainctl
