// From the number of a sample to a row of a batch.
#include "io/loader/part.h"

#include <algorithm>
#include <cstring>

#include "core/base/log.h"
#include "core/metrics/targets.h"

namespace trainctl {
namespace {

// Rows of an image to one place, without gaps.
void copy_image(const ImageView& image, std::byte* to) {
  const std::int64_t row = image.width * image.channels * size_of(image.dtype),
                     stride = image.stride * size_of(image.dtype);
  const auto* from = static_cast<const std::byte*>(image.data);
  for (std::int64_t y = 0; y < image.height; ++y)
    std::memcpy(to + y * row, from + y * stride, static_cast<std::size_t>(row));
}

}  // namespace

DataPart::DataPart(std::shared_ptr<const Dataset> dataset, Subset subset, std::shared_ptr<const Transform> transform,
                   const Options& options)
    : dataset_(std::move(dataset)), subset_(std::move(subset)), transform_(std::move(transform)), options_(options) {
  prepared_bytes_ = transform_->prepared_shape().count() * size_of(transform_->prepared_dtype());
  prepared_bytes_ = (prepared_bytes_ + 3) / 4 * 4;  // the target's floats behind it are aligned
  if (!options.cache) return;
  const DatasetFacts& facts = dataset_->facts();
  const std::int64_t target_bytes = facts.classes > 0 ? 0 : facts.target.count() * size_of(DType::float32);
  cache_ = std::make_unique<SampleCache>(dataset_->size(), subset_.size(), prepared_bytes_ + target_bytes);
}

TensorType DataPart::target_type(TargetForm form) const {
  const DatasetFacts& facts = dataset_->facts();
  require((form == TargetForm::values) == (facts.classes == 0), "targets in a form that they can have");
  return sample_target_type(form, {facts.classes, facts.target});
}

void DataPart::read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row) const {
  try {
    read_whole(number, training, epoch, scratch, row);
    dataset_->read_weights(number, row.weights);
  } catch (const Error& error) {
    if (options_.on_error == OnError::stop || error.kind() != ErrorKind::data) throw;
    warn_once(number, error);
    std::memset(row.input, 0, static_cast<std::size_t>(sample_shape().count() * size_of(input_dtype())));
    std::memset(row.target, 0, static_cast<std::size_t>(target_type(row.form).bytes()));
    std::fill_n(row.weights, weight_count(), 0.0f);
  }
}

void DataPart::warn_once(std::int64_t number, const Error& error) const {
  const std::lock_guard lock(skipped_mutex_);
  if (skipped_.insert(number).second) log::warning(std::string("skipped: ") + error.what());
}

void DataPart::read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch,
                          const Row& row) const {
  const RandomKey key{options_.seed, Purpose::augment, static_cast<std::uint32_t>(epoch)};
  const auto sample_key = static_cast<std::uint64_t>(number);
  if (const std::byte* cached = cache_ ? cache_->find(number) : nullptr) {
    const ImageView image = as_image(cached, transform_->prepared_dtype(), transform_->prepared_shape());
    transform_->finish(image, training, key, sample_key, row.input);
    return write_target(number, reinterpret_cast<const float*>(cached + prepared_bytes_), row);
  }
  Sample& sample = scratch.sample;
  dataset_->read(number, sample);
  const ImageView image = transform_->prepare(sample, *dataset_, number, scratch.transform);
  if (std::byte* cached = cache_ ? cache_->claim(number) : nullptr) {
    copy_image(image, cached);
    const DatasetFacts& facts = dataset_->facts();
    if (facts.classes == 0)
      std::copy_n(sample.target, facts.target.count(), reinterpret_cast<float*>(cached + prepared_bytes_));
    cache_->publish(number);
  }
  transform_->finish(image, training, key, sample_key, row.input);
  write_target(number, sample.target, row);
}

void DataPart::write_target(std::int64_t number, const float* values, const Row& row) const {
  const DatasetFacts& facts = dataset_->facts();
  auto* floats = reinterpret_cast<float*>(row.target);
  if (facts.classes == 0) {
    std::copy_n(values, facts.target.count(), floats);
    return;
  }
  require(row.form == TargetForm::class_number || facts.target.rank() == 0, "classes of positions are numbers");
  const std::int32_t label = dataset_->label(number);
  switch (row.form) {
    case TargetForm::class_number:
      dataset_->read_labels(number, reinterpret_cast<std::int32_t*>(row.target));
      break;
    case TargetForm::one_hot:
      std::fill_n(floats, facts.classes, 0.0f);
      floats[label] = 1;
      break;
    case TargetForm::class_value:
      *floats = static_cast<float>(label);
      break;
    case TargetForm::values:
      break;
  }
}

}  // namespace trainctl
