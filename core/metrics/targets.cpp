// Matches targets, loss and the network's output.
#include "core/metrics/targets.h"

#include <optional>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/metrics/loss.h"

namespace trainctl {
namespace {

std::string outputs_text(std::int64_t width) { return format("{} output{}", width, width == 1 ? "" : "s"); }

// Returns the encoding of class numbers that the loss needs; empty if the output has a wrong width.
std::optional<TargetEncoding> encoding_of_classes(LossTargets loss, std::int64_t width, std::int64_t classes) {
  if (loss == LossTargets::class_numbers) {
    return width >= classes ? std::optional(TargetEncoding::class_number) : std::nullopt;
  }
  const bool one_value = (loss == LossTargets::labels && classes <= 2) || loss == LossTargets::values;
  if (width == 1 && one_value) return TargetEncoding::class_value;
  return width == classes ? std::optional(TargetEncoding::one_hot) : std::nullopt;
}

TargetEncoding match_classes(const ResolvedLoss& loss, std::int64_t width, const TargetInfo& targets, Reader& reader) {
  const auto encoding = encoding_of_classes(targets_of(loss.rule), width, targets.classes);
  const TargetEncoding declared = declared_encoding(targets);
  if (encoding == TargetEncoding::class_value && targets_of(loss.rule) == LossTargets::values &&
      targets.class_names.size() > 2) {
    reader.error(
        loss.location,
        format("{} needs values, but the data's targets are words ({}, {}, ...), whose numbers have no meaning: give "
               "the network an output for each of the {} classes, or use sparse_categorical_crossentropy",
               name_of(loss.rule), targets.class_names[0], targets.class_names[1], targets.classes));
    return *encoding;
  }
  if (targets.label_mode == LabelMode::integer || encoding == declared) {
    if (encoding) return *encoding;
    reader.error(
        loss.location,
        format("the data has {}, but the network has {}: give it an output for each class{}",
               counted(targets.classes, "class"), outputs_text(width),
               targets_of(loss.rule) == LossTargets::labels && targets.classes > 2
                   ? ", and use sparse_categorical_crossentropy with a softmax if the classes exclude each other"
                   : ""));
    return declared;
  }
  const std::string_view mode = name_of(targets.label_mode);
  const std::string_view produced = declared == TargetEncoding::one_hot ? "one value for each class" : "0 or 1";
  if (targets_of(loss.rule) == LossTargets::class_numbers) {
    reader.error(loss.location,
                 format("{} needs class numbers, but data.label_mode: {} produces {}: leave label_mode out, or use {}",
                        name_of(loss.rule), mode, produced,
                        declared == TargetEncoding::one_hot ? "categorical_crossentropy"
                                                            : "binary_crossentropy and one output"));
  } else {
    reader.error(loss.location, format("data.label_mode: {} produces {}, which does not fit {} with {}: leave "
                                       "label_mode out, or give the network {}",
                                       mode, produced, name_of(loss.rule), outputs_text(width),
                                       outputs_text(declared == TargetEncoding::one_hot ? targets.classes : 1)));
  }
  return declared;
}

// The shape of positions, P..., of an output [n, P..., K].
Shape positions(const Shape& output) {
  const std::vector<std::int64_t>& sizes = output.sizes();
  return Shape(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end() - 1));
}

// Reports that the targets have classes for other positions than the output.
void report_positions(const ResolvedLoss& loss, const Shape& output, const TargetInfo& targets, Reader& reader) {
  const std::string ends = to_string(output.without_front());
  if (targets.shape.rank() > 0) {
    reader.error(loss.location,
                 format("the data has a class for each of {} positions, but the network ends in {}: let it "
                        "keep the positions, and end it in a dense layer",
                        to_string(targets.shape), ends));
    return;
  }
  reader.error(loss.location, format("{} needs one row of values for each sample, but the network ends in {}: end it "
                                     "with flatten or global_average_pooling2d and dense",
                                     name_of(loss.rule), ends));
}

// Reports targets and outputs that a loss over sequences cannot use.
void check_sequences(const ResolvedLoss& loss, const Shape& output, const TargetInfo& targets, Reader& reader) {
  const auto& ctc = std::get<Ctc>(loss.rule);
  if (output.rank() != 3) {
    reader.error(loss.location, format("{} needs an output of (steps, classes), but the network ends in {}: let it end "
                                       "in a dense layer that keeps the steps",
                                       ctc.name, to_string(output.without_front())));
  } else if (ctc.mask_index >= output.back()) {
    reader.error(loss.location, format("mask_index is {}, but the network has {}, from 0", ctc.mask_index,
                                       outputs_text(output.back())));
  } else if (ctc.mask_index != 0 && !targets.min_steps_of.empty()) {
    reader.error(loss.location, "mask_index must be 0 for this data set, which pads its texts with 0: leave it out");
  } else if (targets.mixed) {
    reader.error(loss.location, format("{} needs sequences of classes as targets, but training mixes samples: leave "
                                       "out mixup and cutmix",
                                       ctc.name));
  } else if (targets.shape.rank() > 1) {
    reader.error(loss.location, format("{} needs a row of class numbers for each sample, but the data's targets have "
                                       "the shape {}",
                                       ctc.name, to_string(targets.shape)));
  } else if (targets.min_steps > output[1]) {
    reader.error(loss.location,
                 format("{}: the target needs {}, one for each class and one more between two "
                        "equal classes, but the network ends in {}: let it keep more steps, or "
                        "leave out the sample",
                        targets.min_steps_of, counted(targets.min_steps, "step"), counted(output[1], "step")));
  }
}

void check_values(const ResolvedLoss& loss, const Shape& output, const Shape& values, Reader& reader) {
  const std::int64_t width = output.without_front().count();
  if (targets_of(loss.rule) == LossTargets::class_numbers) {
    reader.error(loss.location, format("{} needs class numbers, but the data's targets are values: store classes as "
                                       "integers from 0, or use a loss for values (mean_squared_error)",
                                       name_of(loss.rule)));
  } else if (values.count() > 0 && values.count() != width) {
    const bool one = targets_of(loss.rule) == LossTargets::values && values.count() == 1;
    const bool at_positions = output.rank() > 2 && targets_of(loss.rule) == LossTargets::distributions &&
                              values.count() * output.back() == width;
    reader.error(loss.location,
                 format("the data's targets are {} for each sample, but the network has {}: let it end in {}{}",
                        counted(values.count(), "value"), outputs_text(width), outputs_text(values.count()),
                        one            ? ", or set data.classes if whole numbers are classes"
                        : at_positions ? ", or use sparse_categorical_crossentropy if they are classes of positions"
                                       : ""));
  }
}

}  // namespace

TargetEncoding declared_encoding(const TargetInfo& targets) {
  if (targets.classes == 0) return TargetEncoding::values;
  if (targets.label_mode == LabelMode::binary) return TargetEncoding::class_value;
  const bool number = targets.label_mode == LabelMode::integer && !targets.mixed;
  return number ? TargetEncoding::class_number : TargetEncoding::one_hot;
}

TargetEncoding match_targets(const ResolvedLoss& loss, const Shape& output, const TargetInfo& targets, Reader& reader) {
  const bool sparse = targets_of(loss.rule) == LossTargets::class_numbers;
  const TargetEncoding unknown = sparse ? TargetEncoding::class_number : TargetEncoding::values;
  const bool sequences = is_over_sequences(loss.rule);
  if (sequences) {
    const std::size_t before = reader.count();
    check_sequences(loss, output, targets, reader);
    if (reader.count() != before) return unknown;
  }
  if (output.rank() < 2 ||
      (!sequences && targets.classes > 0 && targets.shape.count() > 0 && !(targets.shape == positions(output)))) {
    report_positions(loss, output, targets, reader);
    return unknown;
  }
  const std::int64_t width = output.back();
  if ((sparse || targets_of(loss.rule) == LossTargets::distributions) && width < 2) {
    reader.error(loss.location, format("{} needs an output for each class, but the network has one output: for two "
                                       "classes use binary_crossentropy or two outputs",
                                       name_of(loss.rule)));
    return unknown;
  }
  if (targets.classes > 0) return match_classes(loss, width, targets, reader);
  if (targets.shape.rank() > 0) {
    check_values(loss, output, targets.shape, reader);
    return TargetEncoding::values;
  }
  return unknown;
}

void match_weights(const ResolvedLoss& loss, const Shape& output, const Shape& weight, Reader& reader) {
  if (weight.rank() == 0 || (weight == positions(output) && !is_over_sequences(loss.rule))) return;
  reader.error(loss.location,
               format("the data has weights for each of {} positions, but the network ends in {}{}", to_string(weight),
                      to_string(output.without_front()),
                      is_over_sequences(loss.rule)
                          ? format(", and the loss {} needs one weight for each sample", name_of(loss.rule))
                          : ""));
}

std::int64_t target_length(const Shape& output, const TargetInfo& targets) {
  return targets.classes > 0 ? targets.shape.count() : output[1];
}

TensorType target_type(TargetEncoding encoding, const Shape& output) {
  if (encoding == TargetEncoding::class_number) return {positions(output).with_front(output[0]), DType::int32};
  return {output, DType::float32};
}

TensorType sample_target_type(TargetEncoding encoding, const TargetInfo& targets) {
  switch (encoding) {
    case TargetEncoding::class_number:
      return {targets.shape, DType::int32};
    case TargetEncoding::one_hot:
      return {targets.shape.with_appended(targets.classes), DType::float32};
    case TargetEncoding::class_value:
      return {targets.shape.with_appended(1), DType::float32};
    case TargetEncoding::values:
      break;
  }
  return {targets.shape, DType::float32};
}

bool takes_values(const Choice& loss) {
  const auto& options = loss.as<LossOptions>();
  return options.trains() && targets_of(options.rule()) == LossTargets::values;
}

bool takes_class_numbers(const Choice& loss) {
  return targets_of(loss.as<LossOptions>().rule()) == LossTargets::class_numbers;
}

}  // namespace trainctl
