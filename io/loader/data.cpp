// Opens the data of a run: computes the info that a model needs, and makes the transforms and the sources of batches.
#include "io/loader/data.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/metrics/targets.h"
#include "io/datasets/preparation.h"
#include "io/datasets/usable_cores.h"
#include "io/loader/batches/buffer.h"
#include "io/loader/batches/loader.h"
#include "io/loader/inputs/input_plan.h"
#include "io/loader/inputs/measure.h"
#include "io/loader/inputs/same_part.h"
#include "io/loader/splits/class_spelling.h"
#include "io/loader/splits/class_weights.h"
#include "io/loader/splits/make_split.h"
#include "io/loader/splits/open_splits.h"
#include "io/loader/splits/repeated_samples.h"
#include "io/loader/splits/split.h"

namespace trainctl {
namespace {

// Measures the training split for `normalize: measured`, and records the results.
class TrainingStatistics final : public StatisticsSource {
 public:
  TrainingStatistics(const Dataset& dataset, const Subset& subset, int threads, OnError on_error, Data::Measure measure,
                     std::vector<Statistics>& found)
      : dataset_(dataset), subset_(subset), threads_(threads), on_error_(on_error), measure_(measure), found_(found) {}

  Statistics measure(const TransformPlan& so_far) override {
    if (measure_ == Data::Measure::no) return {{0}, {1}};
    found_.push_back(measure_statistics(dataset_, subset_, so_far, threads_, on_error_));
    return found_.back();
  }

 private:
  const Dataset& dataset_;
  const Subset& subset_;
  int threads_;
  OnError on_error_;
  Data::Measure measure_;
  std::vector<Statistics>& found_;
};

// Returns the statistics that were measured for the inputs once more, for their targets.
class RepeatedStatistics final : public StatisticsSource {
 public:
  // With Data::Measure::no, `measured` is empty, and only the number of the inputs' channels matters.
  RepeatedStatistics(std::vector<Statistics> measured, std::int64_t channels)
      : measured_(std::move(measured)), channels_(static_cast<std::size_t>(channels)) {}

  Statistics measure(const TransformPlan&) override {
    if (next_ < measured_.size()) return measured_[next_++];
    return {std::vector<double>(channels_, 0.0), std::vector<double>(channels_, 1.0)};
  }

 private:
  std::vector<Statistics> measured_;
  std::size_t channels_, next_ = 0;
};

// Returns the types in which the data sets of the splits store an input.
std::vector<DType> stored_types(const OpenedSplits& splits, std::size_t input) {
  std::vector<DType> types;
  for (const auto& split : splits) {
    if (split) types.push_back(split->group.inputs[input]->info().dtype);
  }
  return types;
}

void check_shape(const DataOptions& options, const ModelInput& input) {
  const std::optional<Shape> declared = declared_shape(options, input.name);
  if (!declared || input.sample == *declared) return;
  throw Error(ErrorKind::data, options.dataset.location,
              format("samples have shape {} after the transforms, but the config sets {}", to_string(input.sample),
                     to_string(*declared)),
              "set the right `shape`, or change `transform`");
}

void check_label_mode(const DataOptions& options, LabelMode mode, std::int64_t classes) {
  if (mode == LabelMode::binary && classes != 2) {
    throw Error(ErrorKind::config, options.dataset.location,
                format("`label_mode: binary` needs 2 classes, not {}", classes));
  }
  if (mode == LabelMode::categorical && classes == 0) {
    throw Error(ErrorKind::config, options.dataset.location,
                "`label_mode: categorical` needs classes, but the targets are values", "leave `label_mode` out");
  }
}

// Whether samples are mixed in training.
bool mixes(const DataOptions& options) {
  return std::any_of(options.augment.entries.begin(), options.augment.entries.end(), [](const auto& of_input) {
    return std::any_of(of_input.value.begin(), of_input.value.end(),
                       [](const Choice& choice) { return choice.as<TransformOptions>().mixes(); });
  });
}

ModelInput model_input(const DataOptions& options, const std::string& name, const DataSplit& split, std::size_t number,
                       const DatasetInfo& info, const InputPlan& plan) {
  ModelInput input{name, split.input_type(number).shape, {}};
  if (plan.stored) {
    input.format =
        info.dtype == DType::int32 ? SampleFormat{DType::int32, {}, {}} : byte_format(plan.plan.affine, input.sample);
  }
  check_shape(options, input);
  return input;
}

// Whether a sample looks like an image with its channels first, as in PyTorch: few channels, then height and width. A
// sample of one channel counts only if height and width are equal.
bool looks_channels_first(const Shape& sample) {
  constexpr std::int64_t smallest_side = 8;
  if (sample.rank() != 3 || sample[1] < smallest_side || sample[2] < smallest_side) return false;
  return sample[0] == 3 || sample[0] == 4 || (sample[0] == 1 && sample[1] == sample[2]);
}

}  // namespace

// Throws Error{config} if the target is the input, but the model has several inputs or outputs or its input is tokens.
static void check_target(const DataOptions& options, const DataUse& use) {
  if (!options.target_is_input()) return;
  if (use.inputs.size() > 1 || use.targets.size() > 1) {
    throw Error(ErrorKind::config, options.dataset.location,
                format("`label_mode: input` is for one input and one output, but the model has {} and {}",
                       use.inputs.size(), use.targets.size()));
  }
  if (use.inputs[0].tokens > 0) {
    throw Error(ErrorKind::config, options.dataset.location,
                "`label_mode: input` is for values, but the samples are tokens");
  }
}

// The weights of the classes of the only target that has classes of samples. A sample has one weight for all losses:
// throws Error{config} if several targets have classes.
static SampleClassWeights class_weights_of(const DataUse& use, const DatasetGroup& training, const Subset& subset) {
  std::vector<std::size_t> with_classes;
  for (std::size_t i = 0; i < training.targets.size(); ++i) {
    const DatasetInfo& info = training.targets[i]->info();
    if (!use.targets[i].unused && info.classes > 0 && info.target.rank() == 0) with_classes.push_back(i);
  }
  if (with_classes.size() > 1) {
    throw Error(ErrorKind::config, use.class_weights->location,
                format("class_weights: the outputs '{}' and '{}' have classes, but a sample has one weight for all "
                       "losses",
                       use.targets[with_classes[0]].name, use.targets[with_classes[1]].name),
                "leave class_weights out, and provide weights in the data");
  }
  const std::size_t target = with_classes.empty() ? 0 : with_classes[0];
  return {weights_by_class(*use.class_weights, *training.targets[target], subset), target};
}

Data::Data(const DataOptions& options, std::uint64_t seed, const DataUse& use, Measure measure)
    : options_(options), seed_(seed) {
  check_target(options, use);
  const OpenedSplits opened = open_splits(options, seed, use);
  const DatasetGroup& training = opened[0]->group;
  std::vector<InputPlan> plans;
  for (std::size_t i = 0; i < training.inputs.size(); ++i) {
    const auto before = std::ssize(measured_);
    TrainingStatistics statistics(*training.inputs[i], opened[0]->subset, std::max(1, workers(0)), options.on_error,
                                  measure, measured_);
    plans.push_back(
        plan_input(options, training.inputs[i]->info(), stored_types(opened, i), use.inputs[i].name, statistics));
    kept_.push_back({training.inputs[i]->info(), {measured_.begin() + before, measured_.end()}});
  }
  const std::optional<TransformPlan> target_plan = this->target_plan(*opened[0], use, plans[0], measure);
  SampleClassWeights class_weights;
  if (use.class_weights) class_weights = class_weights_of(use, training, opened[0]->subset);
  std::string fingerprints;
  for (std::size_t p = 0; p < opened.size(); ++p) {
    if (!opened[p]) continue;
    const DatasetGroup& group = opened[p]->group;
    splits_[p] = make_split(options, seed, *opened[p], training, plans, target_plan ? &*target_plan : nullptr,
                            p == 0 ? class_weights : SampleClassWeights{},
                            p == 0 ? mixing_of(options, plans, training) : nullptr, measure == Measure::yes);
    if (caching_pays(options, group, plans)) {
      info_.cached_bytes = checked_add(info_.cached_bytes, splits_[p]->cached_bytes());
    }
    for (const Dataset* dataset : group.distinct()) {
      fingerprints += dataset->info().fingerprint + '\n';
      const std::string& warning = dataset->info().warning;
      if (!warning.empty() && (p == 0 || group.inputs != training.inputs)) info_.warnings.push_back(warning);
    }
  }
  if (use.class_weights) {
    const DatasetInfo& weighed = training.targets[class_weights.target]->info();
    const std::string unnamed = unnamed_classes_warning(*use.class_weights, weighed);
    if (!unnamed.empty()) info_.warnings.push_back(unnamed);
  }
  for (const auto& target : training.targets) {
    const std::string spelling = spelling_warning(target->info().class_names);
    if (!spelling.empty()) info_.warnings.push_back(spelling);
  }
  const std::vector<std::string> repeated = repeated_samples(options, opened);
  info_.warnings.insert(info_.warnings.end(), repeated.begin(), repeated.end());
  info_.inputs.clear();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const DatasetInfo& info = training.inputs[i]->info();
    info_.inputs.push_back(model_input(options, use.inputs[i].name, *splits_[0], i, info, plans[i]));
    if (looks_channels_first(info.sample)) {
      info_.warnings.push_back(
          format("samples have shape {}, which looks like channels first; images must be height x width x channels: "
                 "transpose the array with numpy.moveaxis(x, 1, -1)",
                 to_string(info.sample)));
    }
  }
  info_.targets.clear();
  for (std::size_t i = 0; i < training.targets.size(); ++i) {
    const LabelMode mode = options.label_mode.of(use.targets[i].name);
    info_.targets.push_back(splits_[0]->target_info(i, mode));
    info_.targets.back().mixed = mixes(options);
    for (const auto& split : splits_) {  // ctc needs as many steps as the longest text of any split
      if (split == nullptr) continue;
      const TargetInfo own = split->target_info(i);
      if (own.min_steps <= info_.targets.back().min_steps) continue;
      info_.targets.back().min_steps = own.min_steps;
      info_.targets.back().min_steps_of = own.min_steps_of;
    }
    if (!use.targets[i].unused) check_label_mode(options, mode, info_.targets.back().classes);
  }
  info_.weight = splits_[0]->weight_shape();
  info_.is_masked = splits_[0]->is_masked();
  info_.training_samples = samples(SplitKind::training);
  info_.validation_samples = samples(SplitKind::validation);
  info_.fingerprint = format("{:016x}", xxh3(fingerprints.data(), fingerprints.size()));
}

std::optional<TransformPlan> Data::target_plan(const OpenedSplit& training, const DataUse& use, const InputPlan& images,
                                               Measure measure) {
  const Dataset& targets = *training.group.targets[0];
  if (!targets.info().image_targets || options_.target_is_input() || use.targets[0].unused) return std::nullopt;
  const DatasetInfo& inputs = training.group.inputs[0]->info();
  if (measure == Measure::no) {  // otherwise reading tells each such target
    const std::string problem = problem_of_proportions(inputs.sample, targets.info().sample);
    if (!problem.empty()) info_.warnings.push_back(targets.name_of(0) + ": " + problem);
  }
  const std::string& name = use.inputs[0].name;
  if (!options_.target_transform) {
    RepeatedStatistics same(kept_[0].measured, as_image(nullptr, DType::uint8, inputs.sample).channels);
    kept_targets_.push_back({targets.info(), kept_[0].measured});
    return plan_targets(options_, name, inputs, images.plan, targets.info(), same);
  }
  const auto before = std::ssize(measured_);
  TrainingStatistics own(targets, training.subset, std::max(1, workers(0)), options_.on_error, measure, measured_);
  TransformPlan plan = plan_targets(options_, name, inputs, images.plan, targets.info(), own);
  kept_targets_.push_back({targets.info(), {measured_.begin() + before, measured_.end()}});
  return plan;
}

int Data::workers(int cores) const {
  if (cores <= 0) cores = usable_cores();
  return options_.workers.or_else(std::clamp(cores, 1, 16));
}

std::vector<TargetEncoding> Data::encodings_of(const std::vector<TargetEncoding>& given) const {
  if (!given.empty()) return given;
  std::vector<TargetEncoding> encodings;
  for (const TargetInfo& target : info_.targets) encodings.push_back(declared_encoding(target));
  return encodings;
}

LoaderOptions Data::training_loader(std::int64_t batch_size, const BatchDivision& division, const DataPosition& start,
                                    int cores, const std::vector<TargetEncoding>& targets,
                                    const AllocateBatch& allocate) const {
  return {batch_size,
          division,
          start,
          true,
          options_.shuffle,
          workers(cores),
          options_.workers.is_auto(),
          options_.prefetch,
          encodings_of(targets),
          allocate};
}

std::vector<std::int64_t> Data::sample_numbers(const DataPosition& position, std::int64_t count) const {
  const DataSplit& training = *split(SplitKind::training);
  const EpochOrder order(training.size(), position.seed, position.epoch, options_.shuffle);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(training.subset()[order[position.offset + i]]);
  return numbers;
}

std::int64_t Data::samples(SplitKind kind) const { return has(kind) ? split(kind)->size() : 0; }

std::unique_ptr<BatchSource> Data::training(std::int64_t batch_size, const BatchDivision& division,
                                            const DataPosition& start, int cores,
                                            const std::vector<TargetEncoding>& targets, const AllocateBatch& allocate,
                                            const std::function<bool()>& stop_requested,
                                            const std::function<FlightRecord*()>& flight) const {
  LoaderOptions options = training_loader(batch_size, division, start, cores, targets, allocate);
  options.stop_requested = stop_requested;
  options.flight = flight;
  return make_loader(split(SplitKind::training), options);
}

std::unique_ptr<BatchSource> Data::evaluation(SplitKind split, std::int64_t batch_size, const BatchDivision& division,
                                              int cores, const std::vector<TargetEncoding>& targets,
                                              const AllocateBatch& allocate,
                                              const std::function<bool()>& stop_requested,
                                              const std::function<FlightRecord*()>& flight) const {
  require(has(split), "the split does not exist");
  const DataPosition start{seed_, 0, 0};
  return make_loader(splits_[static_cast<std::size_t>(split)],
                     {batch_size, division, start, false, false, workers(cores), options_.workers.is_auto(),
                      options_.prefetch, encodings_of(targets), allocate, stop_requested, flight});
}

std::int64_t batch_bytes(const DataOptions& options, const DataInfo& info, std::int64_t batch_size,
                         const BatchDivision& division, const std::vector<TargetEncoding>& encodings) {
  std::vector<TensorType> inputs, targets;
  for (const ModelInput& input : info.inputs) inputs.push_back({input.sample, input.format.dtype});
  for (std::size_t i = 0; i < encodings.size(); ++i)
    targets.push_back(sample_target_type(encodings[i], info.targets[i]));
  const bool workers = options.workers.or_else(1) > 0;
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t samples, std::int64_t batch, const BatchDivision& shares) {
    if (samples == 0) return;
    const BufferPlan plan =
        plan_buffers(inputs, targets, info.weight.count(), std::min(batch, samples), shares, workers, options.prefetch);
    bytes = checked_add(bytes, plan.bytes());
  };
  add(info.training_samples, batch_size, division);
  add(info.validation_samples, evaluation_batch(batch_size, division), evaluation_division(division));
  return bytes;
}

// Whether the config sets all shapes and classes, so that files need not be read.
static bool declares_all(const DataOptions& options, const DataUse& use) {
  return std::all_of(use.inputs.begin(), use.inputs.end(),
                     [&](const auto& input) { return declared_shape(options, input.name).has_value(); }) &&
         std::all_of(use.targets.begin(), use.targets.end(), [&](const auto& target) {
           return options.target_is_input() || target.unused || declared_classes(options, target.name).has_value();
         });
}

void prepare_data(const DataOptions& options, const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto& dataset = options.dataset.as<DatasetOptions>();
  const Preparation preparation{options.cache_path.text, progress};
  const auto prepare = [&](const DataLocations& where) {
    for (const DataLocation& piece : where.pieces()) dataset.prepare(piece, preparation);
  };
  prepare(dataset);
  if (options.validation && !options.validation->split) prepare(*options.validation);
  if (options.test) prepare(*options.test);
}

bool is_here(const DataOptions& options) {
  return options.dataset.as<DatasetOptions>().exist() &&
         (!options.validation || options.validation->split || options.validation->exist()) &&
         (!options.test || options.test->exist());
}

DataInfo describe(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  const bool synthetic = options.dataset.name == "synthetic";
  if (!declares_all(options, use) || synthetic) return Data(options, seed, use, Data::Measure::no).info();
  check_target(options, use);
  const auto& dataset = options.dataset.as<DatasetOptions>();
  DataInfo info;
  info.inputs.clear();
  info.targets.clear();
  for (const DataUse::Input& input : use.inputs) {
    info.inputs.push_back({input.name, *declared_shape(options, input.name), {}});
    if (input.tokens > 0 || dataset.known_shape()) info.inputs.back().format.dtype = DType::int32;
  }
  for (const DataUse::Target& target : use.targets) {
    const LabelMode mode = options.label_mode.of(target.name);
    if (options.target_is_input()) {
      info.targets.push_back({0, info.inputs[0].sample});
      continue;
    }
    if (target.unused) {
      info.targets.emplace_back();
      continue;
    }
    TargetInfo added{*declared_classes(options, target.name), {}, mode, {}, {}, mixes(options)};
    check_label_mode(options, mode, added.classes);
    // The number of values in a target is unknown before the array is read.
    if (added.classes == 0 || (target.class_numbers && options.dataset.name == "npy")) added.shape = {0};
    if (dataset.predicts_positions()) {
      added.shape = info.weight = info.inputs[0].sample;
      info.is_masked = true;
      if (dataset.knows_text()) {  // The bytes of the tokens change no cost of a program.
        added.token_bytes = [n = added.classes] { return std::make_shared<const std::vector<float>>(n, 1.0f); };
      }
    }
    if (dataset.holds_masks() && info.inputs[0].sample.rank() == 3) {
      added.shape = {info.inputs[0].sample[0], info.inputs[0].sample[1]};
      info.is_masked = dataset.weighs_pixels();
      if (info.is_masked) info.weight = added.shape;
    }
    info.targets.push_back(std::move(added));
  }
  return info;
}

}  // namespace trainctl
