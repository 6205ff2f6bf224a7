// Opening the parts of the data.
#include "io/loader/data.h"

#include <sched.h>

#include <algorithm>

#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/metrics/targets.h"
#include "io/loader/buffer.h"
#include "io/loader/loader.h"
#include "io/loader/measure.h"

namespace trainctl {
namespace {

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

const DatasetOptions& dataset_of(const DataOptions& options) { return options.dataset.as<DatasetOptions>(); }

Shape stated_shape(const DataOptions& options) { return Shape(*options.shape); }

std::shared_ptr<const Dataset> open_training(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  StatedFacts stated{{}, options.classes, nullptr, use, options.on_error == OnError::skip};
  if (options.shape) stated.sample = stated_shape(options);
  return dataset_of(options).open(dataset_of(options), PartKind::training, stated, seed);
}

std::shared_ptr<const Dataset> open_held_out(const DataOptions& options, const DataLocation& where, PartKind part,
                                             const Dataset& training, DataUse use, std::uint64_t seed) {
  use.target_values = false;  // the training part's classes say it
  const StatedFacts stated{training.facts().sample, {}, &training.facts(), use, options.on_error == OnError::skip};
  return dataset_of(options).open(where, part, stated, seed);
}

// Measures the training part for `normalize: measured`, and keeps what was found.
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

// Throws Error{config} where the affine map is of another number of channels.
SampleFormat byte_format(const Affine& affine, const Shape& sample) {
  check_channels(affine, as_image(nullptr, DType::uint8, sample).channels);
  return {DType::uint8, {affine.scale.begin(), affine.scale.end()}, {affine.offset.begin(), affine.offset.end()}};
}

// That a held-out part has samples of the model's shape is known from its first one, before training begins.
void check_alike(const Dataset& held_out, const Dataset& training, const std::vector<GeometryStep>& fixed) {
  const Shape expected = shape_behind(training.facts().sample, fixed);
  Shape shape;
  try {
    shape = shape_behind(held_out.facts().sample, fixed);
  } catch (const Error& error) {
    data_error(held_out.name_of(0), error.what());
  }
  if (shape == expected) return;
  data_error(held_out.name_of(0),
             format("has shape {}, samples of the training part have {}", to_string(shape), to_string(expected)),
             "bring all to one shape, images by `resize: [height, width]` in `transform`");
}

// Few channels in front, a plane behind them, as PyTorch has images. One row of pixels in front is something else
// where the plane is no square.
bool looks_channels_first(const Shape& sample) {
  constexpr std::int64_t smallest_side = 8;
  if (sample.rank() != 3 || sample[1] < smallest_side || sample[2] < smallest_side) return false;
  return sample[0] == 3 || sample[0] == 4 || (sample[0] == 1 && sample[1] == sample[2]);
}

void refuse_transforms(const DataOptions& options) {
  for (const auto* list : {static_cast<const std::vector<Choice>*>(&options.transform),
                           static_cast<const std::vector<Choice>*>(&options.augment)}) {
    if (list->empty()) continue;
    throw Error(
        ErrorKind::config, list->front().place,
        format("{} changes values, and the network's embedding takes the samples as tokens", list->front().name));
  }
}

void check_label_mode(const DataOptions& options, std::int64_t classes) {
  if (options.label_mode == LabelMode::binary && classes != 2) {
    throw Error(ErrorKind::config, options.dataset.place,
                format("`label_mode: binary` needs 2 classes, not {}", classes));
  }
}

}  // namespace

Data::Data(const DataOptions& options, std::uint64_t seed, const DataUse& use, Measure measure)
    : options_(options), seed_(seed) {
  const std::shared_ptr<const Dataset> training = open_training(options, seed, use);
  const DatasetFacts& facts = training->facts();
  check_label_mode(options, facts.classes);
  std::array<std::shared_ptr<const Dataset>, 3> datasets{training, nullptr, nullptr};
  std::array<Subset, 3> subsets{Subset::all(training->size()), {}, {}};
  if (options.validation && options.validation->split) {
    datasets[1] = training;
    const bool stratify = options.validation->stratify && facts.classes > 0 && facts.target.rank() == 0;
    const double fraction = *options.validation->split;
    const Subset::Split split =
        stratify ? Subset::stratified(
                       training->size(), [&](std::int64_t i) { return training->label(i); }, fraction, seed)
                 : Subset::split(training->size(), fraction, seed);
    subsets[0] = split.training;
    subsets[1] = split.validation;
  } else if (options.validation) {
    datasets[1] = open_held_out(options, *options.validation, PartKind::validation, *training, use, seed);
    subsets[1] = Subset::all(datasets[1]->size());
  }
  if (options.test) {
    datasets[2] = open_held_out(options, *options.test, PartKind::test, *training, use, seed);
    subsets[2] = Subset::all(datasets[2]->size());
  }

  TransformPlan plan;
  plan.affine.then({facts.scale}, {facts.offset});
  TrainingStatistics statistics(*training, subsets[0], workers(0) + 1, options.on_error, measure, measured_);
  for (const auto* list : {static_cast<const std::vector<Choice>*>(&options.transform),
                           static_cast<const std::vector<Choice>*>(&options.augment)}) {
    for (const Choice& choice : *list) choice.as<TransformOptions>().add(choice.place, plan, statistics);
  }
  const bool tokens = facts.dtype == DType::int32;
  if (tokens) refuse_transforms(options);
  // Where every part can, samples stay as they are stored: bytes, which the device scales, or tokens.
  bool stored = true;
  for (const auto& dataset : datasets) {
    stored = stored && (!dataset || stays_as_stored(dataset->facts().dtype, plan.fixed, plan.augment));
  }
  std::string fingerprints;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    if (!datasets[i]) continue;
    check_alike(*datasets[i], *training, plan.fixed);
    auto transform =
        std::make_shared<const Transform>(facts.sample, datasets[i]->facts().dtype, plan.fixed, plan.augment,
                                          stored ? std::nullopt : std::optional(plan.affine));
    const bool cache = options.cache == CacheKind::memory && !(datasets[i]->in_memory() && plan.fixed.empty());
    parts_[i] = std::make_shared<DataPart>(datasets[i], subsets[i], std::move(transform),
                                           DataPart::Options{seed, options.on_error, cache});
    fingerprints += datasets[i]->facts().fingerprint + '\n';
    if (!datasets[i]->facts().warning.empty() && (i == 0 || datasets[i] != training)) {
      info_.warnings.push_back(datasets[i]->facts().warning);
    }
  }
  info_.sample = parts_[0]->sample_shape();
  if (options.shape && !(info_.sample == stated_shape(options))) {
    throw Error(ErrorKind::data, options.dataset.place,
                format("samples have shape {} behind the transforms, the config states {}", to_string(info_.sample),
                       to_string(stated_shape(options))),
                "state the right `shape`, or change `transform`");
  }
  if (stored) info_.format = tokens ? SampleFormat{DType::int32, {}, {}} : byte_format(plan.affine, info_.sample);
  info_.classes = facts.classes;
  info_.target = facts.target;
  info_.weight = facts.weight;
  info_.label_mode = options.label_mode;
  info_.class_names = facts.class_names;
  if (looks_channels_first(facts.sample)) {
    info_.warnings.push_back(
        format("samples have shape {}, which looks like channels first; images are height x width x channels here: "
               "turn the array with numpy.moveaxis(x, 1, -1)",
               to_string(facts.sample)));
  }
  info_.training_samples = samples(PartKind::training);
  info_.validation_samples = samples(PartKind::validation);
  info_.fingerprint = format("{:016x}", xxh3(fingerprints.data(), fingerprints.size()));
}

int Data::workers(int cores) const {
  if (cores <= 0) cores = usable_cores();
  return options_.workers.or_else(std::clamp(cores - 1, 1, 4));
}

TargetForm Data::form_of(std::optional<TargetForm> wanted) const {
  return wanted.value_or(stated_form(info_.label_mode, info_.classes));
}

std::unique_ptr<BatchSource> Data::training(std::int64_t batch_size, const MeshRank& rank, const DataPosition& start,
                                            int cores, std::optional<TargetForm> targets, const AllocateBatch& allocate,
                                            const std::function<bool()>& stop_requested) const {
  return make_loader(parts_[0], {batch_size, rank, start, true, options_.shuffle, workers(cores), options_.prefetch,
                                 form_of(targets), allocate, stop_requested});
}

std::unique_ptr<BatchSource> Data::evaluation(PartKind part, std::int64_t batch_size, const MeshRank& rank, int cores,
                                              std::optional<TargetForm> targets, const AllocateBatch& allocate,
                                              const std::function<bool()>& stop_requested) const {
  require(has(part), "a part that is evaluated");
  const DataPosition start{seed_, 0, 0};
  return make_loader(parts_[static_cast<std::size_t>(part)],
                     {batch_size, rank, start, false, false, workers(cores), options_.prefetch, form_of(targets),
                      allocate, stop_requested});
}

std::int64_t batch_bytes(const DataOptions& options, const DataInfo& info, std::int64_t batch_size, int ranks,
                         TargetForm targets) {
  const TensorType input{info.sample, info.format.dtype};
  const TensorType target = sample_target_type(targets, {info.classes, info.target});
  const bool workers = options.workers.or_else(1) > 0;
  std::int64_t bytes = 0;
  for (const std::int64_t samples : {info.training_samples, info.validation_samples}) {
    const BufferPlan plan = plan_buffers(input, target, info.weight.count(), std::min(batch_size, samples), ranks,
                                         workers, options.prefetch);
    if (samples > 0) bytes = checked_add(bytes, plan.bytes());
  }
  return bytes;
}

DataInfo describe(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  const bool made_up = options.dataset.name == "synthetic";
  if (!options.shape || !options.classes || made_up) {
    return Data(options, seed, use, Data::Measure::no).info();
  }
  DataInfo info;
  info.sample = stated_shape(options);
  info.classes = *options.classes;
  check_label_mode(options, info.classes);
  // What arrays hold for each sample is not known.
  if (info.classes == 0 || (use.class_numbers && options.dataset.name == "npy")) info.target = {0};
  if (use.tokens > 0) info.format.dtype = DType::int32;
  info.label_mode = options.label_mode;
  return info;
}

}  // namespace trainctl
