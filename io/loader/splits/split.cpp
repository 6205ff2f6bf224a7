// Reads samples by their numbers into rows of a batch.
#include "io/loader/splits/split.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/metrics/targets.h"
#include "io/loader/inputs/finite_read.h"
#include "io/loader/inputs/same_part.h"
#include "io/loader/splits/targets.h"

namespace trainctl {
namespace {

// Copies the rows of an image to contiguous memory.
void copy_image(const ImageView& image, std::byte* to) {
  const std::int64_t row = image.width * image.channels * size_of(image.dtype),
                     stride = image.stride * size_of(image.dtype);
  const auto* from = static_cast<const std::byte*>(image.data);
  for (std::int64_t y = 0; y < image.height; ++y)
    std::memcpy(to + y * row, from + y * stride, static_cast<std::size_t>(row));
}

// The bytes of a prepared image with contiguous pixels.
std::int64_t prepared_bytes(const Transform& transform) {
  return transform.prepared_shape().count() * size_of(transform.prepared_dtype());
}

// The bytes of a target's mask, image or values in the cache; 0 for a target that is a class or the input.
std::int64_t target_bytes(const DataSplit::Target& target) {
  const DatasetInfo& info = target.dataset->info();
  if (const Transform* transform = target.transform()) return prepared_bytes(*transform);
  return target.input || target.unused || info.classes > 0 ? 0 : info.target.count() * size_of(DType::float32);
}

void lap(const DataSplit::Scratch& scratch, Stage stage) {
  if (scratch.clock) scratch.clock->lap(stage);
}

}  // namespace

DataSplit::DataSplit(std::vector<Input> inputs, Targets targets, Subset subset, const Options& options)
    : inputs_(std::move(inputs)), targets_(std::move(targets)), subset_(std::move(subset)), options_(options) {
  for (const Input& input : inputs_) {
    input_source_.push_back(source_of(input.dataset));
    input_offset_.push_back(row_bytes_);
    row_bytes_ = round_up(row_bytes_ + prepared_bytes(*input.transform), size_of(DType::float32));
  }
  for (const Target& target : targets_) {
    require(!target.input || inputs_[0].transform->output_dtype() == DType::float32,
            "a target that is the input does not have type float32");
    target_source_.push_back(source_of(target.dataset));
    target_offset_.push_back(row_bytes_);
    row_bytes_ = round_up(row_bytes_ + target_bytes(target), size_of(DType::float32));
  }
  if (options.cache) cache_ = options.cache(sources_[0]->size(), subset_.size(), row_bytes_);
}

std::size_t DataSplit::source_of(const std::shared_ptr<const Dataset>& dataset) {
  const auto found = std::find(sources_.begin(), sources_.end(), dataset);
  if (found != sources_.end()) return static_cast<std::size_t>(found - sources_.begin());
  sources_.push_back(dataset);
  return sources_.size() - 1;
}

TensorType DataSplit::input_type(std::size_t input) const {
  const Transform& transform = *inputs_[input].transform;
  return {transform.output_shape(), transform.output_dtype()};
}

TargetInfo DataSplit::target_info(std::size_t number, LabelMode mode) const {
  const Target& target = targets_[number];
  const DatasetInfo& info = target.dataset->info();
  if (target.unused) return {0, {}};
  if (target.input) return {0, inputs_[0].transform->output_shape()};
  if (target.image) return {0, target.image->output_shape()};
  if (!target.mask) {
    return {info.classes, info.target, mode, info.class_names, info.token_bytes, info.min_steps, info.min_steps_of};
  }
  const Shape& mask = target.mask->output_shape();
  return {info.classes, {mask[0], mask[1]}, mode, info.class_names};
}

TensorType DataSplit::target_type(std::size_t target, TargetEncoding encoding) const {
  const TargetInfo info = target_info(target);
  require((encoding == TargetEncoding::values) == (info.classes == 0), "the encoding is not possible for the targets");
  return sample_target_type(encoding, info);
}

Shape DataSplit::weight_shape() const {
  if (targets_.empty()) return {};
  const Shape& stored = targets_[0].dataset->info().weight;
  return targets_[0].mask && stored.rank() > 0 ? target_info(0).shape : stored;
}

DataSplit::Scratch DataSplit::scratch(const std::vector<TargetEncoding>& encodings) const {
  Scratch scratch;
  scratch.samples.resize(sources_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {  // a data set of images is used by one input only
    scratch.samples[input_source_[i]].resize = inputs_[i].transform->first_resize();
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].image) scratch.samples[target_source_[i]].resize = targets_[i].image->first_resize();
  }
  scratch.inputs.resize(inputs_.size());
  scratch.targets.resize(targets_.size());
  scratch.prepared.inputs.resize(inputs_.size());
  scratch.prepared.targets.resize(targets_.size());
  scratch.prepared.values.resize(targets_.size());
  if (!options_.mixing) return scratch;
  const auto memory = [&](std::int64_t bytes) {
    return scratch.partner_values.emplace_back(divide_up(bytes, size_of(DType::float32))).data();
  };
  Row& partner = scratch.partner;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    partner.inputs.push_back(reinterpret_cast<std::byte*>(memory(input_type(i).bytes())));
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    partner.targets.push_back(reinterpret_cast<std::byte*>(memory(target_type(i, encodings[i]).bytes())));
  }
  partner.weights = memory(weight_count() * size_of(DType::float32));
  return scratch;
}

bool DataSplit::read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                     const std::vector<TargetEncoding>& encodings) const {
  std::int64_t reading = number;
  try {
    read_weighted(number, training, epoch, scratch, row, encodings);
    if (!training || !options_.mixing) return true;
    const RandomKey key{options_.seed, Purpose::augment, static_cast<std::uint32_t>(epoch)};
    const Mixing::Mix drawn = options_.mixing->draw(key, static_cast<std::uint64_t>(number), size());
    reading = subset_[drawn.partner];
    read_weighted(reading, training, epoch, scratch, scratch.partner, encodings);
    mix(drawn, scratch.partner, row, encodings);
    return true;
  } catch (const Error& error) {
    if (!skips(error)) throw;
    warn_once(reading, std::string("skipped: ") + error.what());
  }
  fill_skipped(number, training, epoch, scratch, row, encodings);
  std::fill_n(row.weights, weight_count(), 0.0f);
  return false;
}

void DataSplit::fill_skipped(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                             const std::vector<TargetEncoding>& encodings) const {
  constexpr std::uint32_t max_tries = 8;
  for (std::uint32_t i = 0; training && i < max_tries; ++i) {
    const RandomKey key{options_.seed, Purpose::skipped, static_cast<std::uint32_t>(epoch)};
    const std::uint32_t drawn = key.block(static_cast<std::uint64_t>(number), i)[0];
    try {
      return read_whole(subset_[static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(size()))], training, epoch,
                        scratch, row, encodings);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
    }
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    std::memset(row.inputs[i], 0, static_cast<std::size_t>(input_type(i).bytes()));
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    std::memset(row.targets[i], 0, static_cast<std::size_t>(target_type(i, encodings[i]).bytes()));
  }
}

void DataSplit::read_weighted(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                              const std::vector<TargetEncoding>& encodings) const {
  read_whole(number, training, epoch, scratch, row, encodings);
  const SampleClassWeights& weights = options_.class_weights;
  if (!training || weights.of_class.empty()) return;
  const std::int32_t label = targets_[weights.target].dataset->label(number);
  if (label < 0 || label >= std::ssize(weights.of_class)) return;  // the loss ignores it
  const float weight = weights.of_class[static_cast<std::size_t>(label)];
  std::transform(row.weights, row.weights + weight_count(), row.weights, [=](float own) { return own * weight; });
}

// The loss of mixed classes is the sum of the losses of both samples' classes, weighted by their shares and their own
// weights. The weight of the mixed sample is therefore the sum of these products, and the probability of each class is
// its share of that sum.
void DataSplit::mix(const Mixing::Mix& mix, const Row& partner, const Row& row,
                    const std::vector<TargetEncoding>& encodings) const {
  options_.mixing->apply(mix, input_type(0).dtype, row.inputs[0], partner.inputs[0]);
  const double own = mix.share * static_cast<double>(*row.weights);
  const double weight = own + (1 - mix.share) * static_cast<double>(*partner.weights);
  *row.weights = static_cast<float>(weight);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    require(encodings[i] != TargetEncoding::class_number, "mixed classes cannot be class numbers");
    const bool by_weight = encodings[i] != TargetEncoding::values && weight > 0;
    blend(by_weight ? own / weight : mix.share, target_type(i, encodings[i]).shape.count(),
          reinterpret_cast<float*>(row.targets[i]), reinterpret_cast<const float*>(partner.targets[i]));
  }
}

bool DataSplit::skips(const Error& error) const {
  const bool non_finite = options_.skip_non_finite && dynamic_cast<const NonFiniteError*>(&error) != nullptr;
  return error.kind() == ErrorKind::data && (options_.on_error == OnError::skip || non_finite);
}

void DataSplit::warn_once(std::int64_t number, const std::string& text) const {
  const std::lock_guard lock(named_mutex_);
  if (named_.insert(number).second) log::warning(text);
}

void DataSplit::warn_of_problem(std::int64_t number, const std::string& text) const {
  constexpr std::size_t max_warnings = 10;
  const std::lock_guard lock(named_mutex_);
  if (named_.size() < max_warnings && named_.insert(number).second) {
    log::warning(text + (named_.size() == max_warnings ? "; further files of this kind are not named" : ""));
  }
}

void DataSplit::read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                           const std::vector<TargetEncoding>& encodings) const {
  if (scratch.clock) scratch.clock->start();
  if (const std::byte* kept = cache_ ? cache_->find(number, scratch.cached) : nullptr) {
    unpack(kept, scratch.prepared);
  } else {
    prepare(number, scratch);
    if (std::byte* const empty = cache_ ? cache_->claim(number, scratch.cached) : nullptr) {
      pack(scratch.prepared, empty);
      cache_->publish(number, scratch.cached);
    }
  }
  lap(scratch, Stage::cache);
  const RandomKey key{options_.seed, Purpose::augment, static_cast<std::uint32_t>(epoch)};
  const auto sample = static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].transform->finish(scratch.prepared.inputs[i], training, key, sample, row.inputs[i]);
  }
  lap(scratch, Stage::augment);
  if (targets_.empty()) {
    *row.weights = 1;
  } else if (!targets_[0].mask || weight_count() == 1) {
    targets_[0].dataset->read_weights(number, row.weights);
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].unused) {
      std::memset(row.targets[i], 0, sizeof(float));
    } else if (targets_[i].input) {
      std::memcpy(row.targets[i], row.inputs[0], static_cast<std::size_t>(input_type(0).bytes()));
    } else if (const auto& image = targets_[i].image) {
      image->finish(scratch.prepared.targets[i], training, key, sample, row.targets[i]);
    } else if (const auto& transform = targets_[i].mask) {
      const std::int64_t pixels = transform->output_shape().count();
      scratch.mask.resize(static_cast<std::size_t>(pixels));
      transform->finish(scratch.prepared.targets[i], training, key, sample,
                        reinterpret_cast<std::byte*>(scratch.mask.data()));
      write_mask(scratch.mask.data(), pixels, targets_[i].dataset->info().classes, encodings[i], row.targets[i]);
      if (i == 0 && weight_shape().rank() > 0) write_mask_weights(scratch.mask.data(), pixels, row.weights);
    } else {
      write_target(*targets_[i].dataset, number, scratch.prepared.values[i], encodings[i], row.targets[i]);
    }
  }
  lap(scratch, Stage::target);
}

void DataSplit::prepare(std::int64_t number, Scratch& scratch) const {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Sample& sample = scratch.samples[i];
    sample.decoding_seconds = 0;
    read_finite(*sources_[i], number, options_.on_error == OnError::skip || options_.skip_non_finite, sample);
    if (!sample.warning.empty()) warn_of_problem(number, sources_[i]->name_of(number) + ": " + sample.warning);
    lap(scratch, Stage::read);
    if (scratch.clock) scratch.clock->move(sample.decoding_seconds, Stage::read, Stage::decode);
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto& [dataset, transform] = inputs_[i];
    scratch.prepared.inputs[i] =
        transform->prepare(scratch.samples[input_source_[i]], *dataset, number, scratch.inputs[i]);
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    const Sample& sample = scratch.samples[target_source_[i]];
    scratch.prepared.values[i] = sample.target;
    const Transform* transform = target.transform();
    if (!transform) continue;
    const Shape &image = scratch.samples[input_source_[0]].stored_shape(), &own = sample.stored_shape();
    if (target.mask && (own[0] != image[0] || own[1] != image[1])) {
      data_error(target.dataset->name_of(number),
                 format("is {}x{}, but its image is {}x{}", own[0], own[1], image[0], image[1]));
    }
    if (const std::string problem = target.image ? problem_of_proportions(image, own) : ""; !problem.empty()) {
      warn_of_problem(number, target.dataset->name_of(number) + ": " + problem);
    }
    scratch.prepared.targets[i] = transform->prepare(sample, *target.dataset, number, scratch.targets[i]);
  }
  lap(scratch, Stage::transform);
}

void DataSplit::pack(const Prepared& prepared, std::byte* to) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) copy_image(prepared.inputs[i], to + input_offset_[i]);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].transform()) {
      copy_image(prepared.targets[i], to + target_offset_[i]);
    } else if (const std::int64_t bytes = target_bytes(targets_[i])) {
      std::memcpy(to + target_offset_[i], prepared.values[i], static_cast<std::size_t>(bytes));
    }
  }
}

void DataSplit::unpack(const std::byte* from, Prepared& prepared) const {
  const auto image = [&](const Transform& transform, std::int64_t offset) {
    return as_image(from + offset, transform.prepared_dtype(), transform.prepared_shape());
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    prepared.inputs[i] = image(*inputs_[i].transform, input_offset_[i]);
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (const Transform* transform = targets_[i].transform()) {
      prepared.targets[i] = image(*transform, target_offset_[i]);
    }
    prepared.values[i] = reinterpret_cast<const float*>(from + target_offset_[i]);
  }
}

}  // namespace trainctl
