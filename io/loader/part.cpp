// Reads a sample by its number into a row of a batch.
#include "io/loader/part.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/log.h"
#include "core/metrics/targets.h"

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

// Bytes of a target's values in the cache: floats, or 0 for targets that are classes.
std::int64_t value_bytes(const DatasetFacts& facts) {
  return facts.classes > 0 ? 0 : facts.target.count() * size_of(DType::float32);
}

}  // namespace

DataPart::DataPart(std::vector<Input> inputs, Datasets targets, Subset subset, const Options& options)
    : inputs_(std::move(inputs)), targets_(std::move(targets)), subset_(std::move(subset)), options_(options) {
  for (const Input& input : inputs_) {
    input_source_.push_back(source_of(input.dataset));
    input_offset_.push_back(row_bytes_);
    const Transform& transform = *input.transform;
    row_bytes_ += transform.prepared_shape().count() * size_of(transform.prepared_dtype());
    row_bytes_ = round_up(row_bytes_, size_of(DType::float32));
  }
  for (const auto& target : targets_) {
    target_source_.push_back(source_of(target));
    target_offset_.push_back(row_bytes_);
    row_bytes_ += value_bytes(target->facts());
  }
  if (options.cache) cache_ = std::make_unique<SampleCache>(sources_[0]->size(), subset_.size(), row_bytes_);
}

std::size_t DataPart::source_of(const std::shared_ptr<const Dataset>& dataset) {
  const auto found = std::find(sources_.begin(), sources_.end(), dataset);
  if (found != sources_.end()) return static_cast<std::size_t>(found - sources_.begin());
  sources_.push_back(dataset);
  return sources_.size() - 1;
}

TensorType DataPart::input_type(std::size_t input) const {
  const Transform& transform = *inputs_[input].transform;
  return {transform.output_shape(), transform.output_dtype()};
}

TensorType DataPart::target_type(std::size_t target, TargetForm form) const {
  const DatasetFacts& facts = targets_[target]->facts();
  require((form == TargetForm::values) == (facts.classes == 0), "targets in a form that they can have");
  return sample_target_type(form, {facts.classes, facts.target});
}

DataPart::Scratch DataPart::scratch(const std::vector<TargetForm>& forms) const {
  Scratch scratch;
  scratch.samples.resize(sources_.size());
  scratch.transforms.resize(inputs_.size());
  if (!options_.mixing) return scratch;
  const auto memory = [&](std::int64_t bytes) {
    return scratch.partner_values.emplace_back(divide_up(bytes, size_of(DType::float32))).data();
  };
  Row& partner = scratch.partner;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    partner.inputs.push_back(reinterpret_cast<std::byte*>(memory(input_type(i).bytes())));
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    partner.targets.push_back(reinterpret_cast<std::byte*>(memory(target_type(i, forms[i]).bytes())));
  }
  partner.weights = memory(weight_count() * size_of(DType::float32));
  return scratch;
}

void DataPart::read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                    const std::vector<TargetForm>& forms) const {
  std::int64_t reading = number;
  try {
    read_weighted(number, training, epoch, scratch, row, forms);
    if (!training || !options_.mixing) return;
    const RandomKey key{options_.seed, Purpose::augment, static_cast<std::uint32_t>(epoch)};
    const Mixing::Mix drawn = options_.mixing->draw(key, static_cast<std::uint64_t>(number), size());
    reading = subset_[drawn.partner];
    read_weighted(reading, training, epoch, scratch, scratch.partner, forms);
    mix(drawn, scratch.partner, row, forms);
  } catch (const Error& error) {
    if (options_.on_error == OnError::stop || error.kind() != ErrorKind::data) throw;
    warn_once(reading, error);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::memset(row.inputs[i], 0, static_cast<std::size_t>(input_type(i).bytes()));
    }
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      std::memset(row.targets[i], 0, static_cast<std::size_t>(target_type(i, forms[i]).bytes()));
    }
    std::fill_n(row.weights, weight_count(), 0.0f);
  }
}

void DataPart::read_weighted(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                             const std::vector<TargetForm>& forms) const {
  read_whole(number, training, epoch, scratch, row, forms);
  targets_[0]->read_weights(number, row.weights);
  if (!training || options_.class_weights.empty()) return;
  const float weight = options_.class_weights[static_cast<std::size_t>(targets_[0]->label(number))];
  std::transform(row.weights, row.weights + weight_count(), row.weights, [=](float own) { return own * weight; });
}

// The loss of mixed classes is the sum of those of both samples' classes, by their shares and their own weights: the
// weight is that of both, and each class' probability is its part of it.
void DataPart::mix(const Mixing::Mix& mix, const Row& partner, const Row& row,
                   const std::vector<TargetForm>& forms) const {
  options_.mixing->apply(mix, input_type(0).dtype, row.inputs[0], partner.inputs[0]);
  const double own = mix.share * static_cast<double>(*row.weights);
  const double weight = own + (1 - mix.share) * static_cast<double>(*partner.weights);
  *row.weights = static_cast<float>(weight);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    require(forms[i] != TargetForm::class_number, "mixed classes are probabilities");
    const bool by_weight = forms[i] != TargetForm::values && weight > 0;
    blend(by_weight ? own / weight : mix.share, target_type(i, forms[i]).shape.count(),
          reinterpret_cast<float*>(row.targets[i]), reinterpret_cast<const float*>(partner.targets[i]));
  }
}

void DataPart::warn_once(std::int64_t number, const Error& error) const {
  const std::lock_guard lock(skipped_mutex_);
  if (skipped_.insert(number).second) log::warning(std::string("skipped: ") + error.what());
}

void DataPart::read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                          const std::vector<TargetForm>& forms) const {
  const RandomKey key{options_.seed, Purpose::augment, static_cast<std::uint32_t>(epoch)};
  if (const std::byte* cached = cache_ ? cache_->find(number) : nullptr) {
    return finish_cached(number, training, key, cached, row, forms);
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i]->read(number, scratch.samples[i]);
  std::byte* const cached = cache_ ? cache_->claim(number) : nullptr;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto& [dataset, transform] = inputs_[i];
    const Sample& sample = scratch.samples[input_source_[i]];
    const ImageView image = transform->prepare(sample, *dataset, number, scratch.transforms[i]);
    if (cached) copy_image(image, cached + input_offset_[i]);
    transform->finish(image, training, key, static_cast<std::uint64_t>(number), row.inputs[i]);
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const float* values = scratch.samples[target_source_[i]].target;
    const std::int64_t bytes = value_bytes(targets_[i]->facts());
    if (cached && bytes > 0) std::memcpy(cached + target_offset_[i], values, static_cast<std::size_t>(bytes));
    write_target(number, i, values, forms[i], row.targets[i]);
  }
  if (cached) cache_->publish(number);
}

void DataPart::finish_cached(std::int64_t number, bool training, const RandomKey& key, const std::byte* cached,
                             const Row& row, const std::vector<TargetForm>& forms) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Transform& transform = *inputs_[i].transform;
    const ImageView image = as_image(cached + input_offset_[i], transform.prepared_dtype(), transform.prepared_shape());
    transform.finish(image, training, key, static_cast<std::uint64_t>(number), row.inputs[i]);
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    write_target(number, i, reinterpret_cast<const float*>(cached + target_offset_[i]), forms[i], row.targets[i]);
  }
}

void DataPart::write_target(std::int64_t number, std::size_t target, const float* values, TargetForm form,
                            std::byte* to) const {
  const Dataset& dataset = *targets_[target];
  const DatasetFacts& facts = dataset.facts();
  auto* floats = reinterpret_cast<float*>(to);
  if (facts.classes == 0) {
    std::copy_n(values, facts.target.count(), floats);
    return;
  }
  require(form == TargetForm::class_number || facts.target.rank() == 0, "classes of positions are numbers");
  switch (form) {
    case TargetForm::class_number:
      dataset.read_labels(number, reinterpret_cast<std::int32_t*>(to));
      break;
    case TargetForm::one_hot:
      std::fill_n(floats, facts.classes, 0.0f);
      floats[dataset.label(number)] = 1;
      break;
    case TargetForm::class_value:
      *floats = static_cast<float>(dataset.label(number));
      break;
    case TargetForm::values:
      break;
  }
}

}  // namespace trainctl
