// The data set of TFRecord files.
#include "io/datasets/records/tfrecord.h"

#include <cstring>
#include <optional>
#include <utility>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/array.h"
#include "io/datasets/images/image_codec.h"
#include "io/datasets/options.h"
#include "io/datasets/records/shards.h"
#include "io/datasets/records/tf_features.h"
#include "io/datasets/records/tfrecord_index.h"

namespace trainctl {
namespace {

constexpr std::int64_t max_values = 1 << 26;  // largest number of values of a feature of a sample

// Whether a file has one of TensorFlow's usual names: x.tfrecord, x.tfrecords-00003-of-00100, train-00003-of-00100.
bool is_tfrecord(const std::string& name) {
  return name.find("tfrecord") != std::string::npos || name.find("-of-") != std::string::npos;
}

// A view of a record in memory, for a cursor; `data` must outlive it.
Bytes view_of(const std::vector<std::byte>& data) {
  return {std::shared_ptr<const std::byte>(std::shared_ptr<const std::byte>(), data.data()), std::ssize(data)};
}

class TfRecords final : public Dataset {
 public:
  TfRecords(const std::string& path, const TfRecordFormat& how, const DeclaredInfo& declared);

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return index_->size(); }
  bool in_memory() const override { return false; }
  std::string name_of(std::int64_t index) const override { return index_->name_of(index); }
  std::int32_t label(std::int64_t index) const override { return targets_->label(index); }
  void read_labels(std::int64_t index, std::int32_t* labels) const override { targets_->read_labels(index, labels); }
  void read_weights(std::int64_t index, float* weights) const override { targets_->read_weights(index, weights); }

  void read(std::int64_t index, Sample& sample) const override {
    try {
      read_sample(index, sample);
    } catch (const Error& error) {
      if (skip_unreadable_ || error.kind() != ErrorKind::data) throw;
      throw Error(ErrorKind::data, error.what(), "get the file again, or set `on_error: skip`");
    }
    targets_->read(index, sample);
  }

 private:
  bool add_record(Cursor& cursor, Span data, const std::string& name, TfTargets& targets);
  void read_sample(std::int64_t index, Sample& sample) const;
  void read_image(const std::vector<Span>& images, const std::string& name, Sample& sample) const;
  void read_numbers(Cursor& cursor, const FeatureSpans& spans, const std::string& name, Sample& sample) const;
  void learn_shape(const std::string& path);

  TfRecordFormat format_;  // with the names of the features that were found
  bool skip_unreadable_;
  bool held_out_;          // whether the split is not the training split
  bool targets_may_miss_;  // whether records need no label
  std::int64_t tokens_;
  std::int64_t channels_ = 3;
  std::optional<TfRecordIndex> index_;
  std::shared_ptr<const Dataset> targets_;
  DatasetInfo info_;
  std::vector<std::int64_t> widths_;  // number of values of each feature; empty until the first sample has been read
  std::int64_t left_out_ = 0;         // number of records without a readable target
  std::string problem_;               // the error of the first of these records
};

TfRecords::TfRecords(const std::string& path, const TfRecordFormat& how, const DeclaredInfo& declared)
    : format_(how),
      skip_unreadable_(declared.skip_unreadable),
      held_out_(declared.training != nullptr),
      targets_may_miss_(declared.targets_may_miss()),
      tokens_(declared.use.tokens) {
  if (declared.sample && declared.sample->rank() == 3 && declared.sample->back() == 1) channels_ = 1;
  TfTargets targets;
  index_.emplace(shard_files(path, is_tfrecord), [&](Cursor& cursor, Span data, const std::string& name) {
    return add_record(cursor, data, name, targets);
  });
  if (size() == 0) data_error(path, format("none of its {} records can be read; the first: {}", left_out_, problem_));
  targets_ = targets.dataset(path, declared);
  info_ = targets_->info();
  learn_shape(path);
  const bool other_rank = declared.sample && declared.sample->rank() != info_.sample.rank();
  const bool numbers = !format_.features.empty();
  if (numbers && other_rank && declared.sample->count() == info_.sample.count()) info_.sample = *declared.sample;
  info_.dtype = !numbers ? DType::uint8 : tokens_ > 0 ? DType::int32 : DType::float32;
  info_.fingerprint = format("{} records {:016x}, {}", size(), index_->hash(), info_.fingerprint);
  if (left_out_ > 0) {
    info_.warning = format("{}: {} records cannot be read and are left out; the first: {}", path, left_out_, problem_);
  }
}

bool TfRecords::add_record(Cursor& cursor, Span data, const std::string& name, TfTargets& targets) {
  try {
    const FeatureSpans spans = features_of(cursor, data, name);
    const bool weight_is_optional = held_out_ && targets.empty();
    if (weight_is_optional && format_.weight && !spans.contains(*format_.weight)) format_.weight.reset();
    if (targets_may_miss_) {
      targets.add_without_target(cursor, spans, format_.weight, name);
      return true;
    }
    std::string label = choose_feature(format_.label, {"image/class/label", "label", "y"}, spans, "label", name);
    targets.add(cursor, spans, label, format_.weight, name);
    format_.label = std::move(label);
    return true;
  } catch (const Error& error) {
    if (!skip_unreadable_ || error.kind() != ErrorKind::data) throw;
    if (left_out_++ == 0) problem_ = error.what();
    return false;
  }
}

// Sets the shape of samples to the shape of the first sample that can be read.
void TfRecords::learn_shape(const std::string& path) {
  Sample sample;
  std::string problem;
  for (std::int64_t i = 0; i < size(); ++i) {
    try {
      index_->read(i, sample.scratch);
      Cursor cursor(view_of(sample.scratch));
      const FeatureSpans spans = features_of(cursor, {0, cursor.size()}, name_of(i));
      if (format_.features.empty()) {
        format_.image =
            choose_feature(format_.image, {"image/encoded", "image", "image_raw"}, spans, "image", name_of(i));
      } else {
        std::vector<std::int64_t> widths;
        for (const std::string& key : format_.features) {
          widths.push_back(read_named(cursor, spans, key, max_values, name_of(i)).count());
        }
        widths_ = std::move(widths);
      }
      read_sample(i, sample);
      info_.sample = sample.shape;
      return;
    } catch (const Error& error) {
      if (!skip_unreadable_ || error.kind() != ErrorKind::data) throw;
      if (problem.empty()) problem = error.what();
    }
  }
  data_error(path, format("none of its {} records can be read; the first: {}", size(), problem));
}

void TfRecords::read_sample(std::int64_t index, Sample& sample) const {
  const std::string name = name_of(index);
  index_->read(index, sample.scratch);
  Cursor cursor(view_of(sample.scratch));
  const FeatureSpans spans = features_of(cursor, {0, cursor.size()}, name);
  if (!format_.features.empty()) return read_numbers(cursor, spans, name, sample);
  const TfFeature image = read_named(cursor, spans, *format_.image, 1, name);
  if (image.kind != TfFeature::Kind::bytes) {
    data_error(name, format("feature '{}' holds numbers, but an image's bytes are expected", *format_.image),
               "name the features of numbers with `features`");
  }
  read_image(image.bytes, name, sample);
}

void TfRecords::read_image(const std::vector<Span>& images, const std::string& name, Sample& sample) const {
  const std::byte* bytes = sample.scratch.data() + images[0].begin;
  if (format_.raw_shape) {
    const auto& [height, width, channels] = *format_.raw_shape;
    sample.shape = Shape{height, width, channels};
    if (images[0].size() != sample.shape.count()) {
      data_error(name, format("feature '{}' has {} bytes, but raw_shape needs {}", *format_.image, images[0].size(),
                              sample.shape.count()));
    }
    sample.dtype = DType::uint8;
    sample.values = bytes;
  } else {
    decode_sample(bytes, images[0].size(), channels_, name, sample);
  }
}

void TfRecords::read_numbers(Cursor& cursor, const FeatureSpans& spans, const std::string& name, Sample& sample) const {
  std::int64_t count = 0;
  for (const std::int64_t width : widths_) count += width;
  sample.buffer.resize(static_cast<std::size_t>(count) * sizeof(float));
  static_assert(sizeof(float) == sizeof(std::int32_t));
  auto* floats = reinterpret_cast<float*>(sample.buffer.data());
  auto* tokens = reinterpret_cast<std::int32_t*>(sample.buffer.data());
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    const std::string& key = format_.features[i];
    const TfFeature feature = read_named(cursor, spans, key, max_values, name);
    const bool wrong_kind =
        tokens_ > 0 ? feature.kind != TfFeature::Kind::integers : feature.kind == TfFeature::Kind::bytes;
    if (wrong_kind) {
      data_error(name, format("feature '{}' holds no {}", key, tokens_ > 0 ? "whole numbers" : "numbers"));
    }
    if (feature.count() != widths_[i]) {
      data_error(name, format("feature '{}' has {}, but the first record has {}", key,
                              counted(feature.count(), "value"), grouped(widths_[i])));
    }
    for (const std::int64_t number : feature.integers) {
      if (tokens_ == 0) {
        *floats++ = static_cast<float>(number);
        continue;
      }
      if (number < 0 || number >= tokens_) {
        data_error(name, format("holds token {}, and the embedding has 0 to {}", number, tokens_ - 1));
      }
      *tokens++ = static_cast<std::int32_t>(number);
    }
    floats = std::copy(feature.floats.begin(), feature.floats.end(), floats);
  }
  sample.shape = info_.sample.count() == count ? info_.sample : Shape{count};
  sample.dtype = tokens_ > 0 ? DType::int32 : DType::float32;
  sample.values = sample.buffer.data();
}

struct TfRecordOptions final : DatasetOptions, TfRecordFormat {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    if (where.path.empty()) throw Error(ErrorKind::config, "tfrecord needs `path`");
    return tfrecord_dataset(where.path.text, *this, declared);
  }
  bool holds_image_files() const override { return features.empty() && !raw_shape; }
  std::vector<std::string> files_of(const DataLocation& where) const override {
    return where.path.empty() ? std::vector<std::string>() : shard_files(where.path.text, is_tfrecord);
  }
};

}  // namespace

std::shared_ptr<const Dataset> tfrecord_dataset(const std::string& path, const TfRecordFormat& format,
                                                const DeclaredInfo& declared) {
  return std::make_shared<TfRecords>(path, format, declared);
}

Section tfrecord_choice() {
  return Keys<TfRecordOptions>("tfrecord", "TensorFlow's TFRecord files of tf.train.Example, not compressed.")
      .key("path", &TfRecordOptions::path,
           "A file, a folder (of files named *tfrecord* or *-of-*), or a pattern with *, ? and {000..127}; files are "
           "read in bytewise order of their names. Or a list of these, which are read one after another.")
      .key("image", &TfRecordOptions::image,
           "The feature with the bytes of an image file in one of the formats of image_folder; default: image/encoded, "
           "image or image_raw.")
      .key("label", &TfRecordOptions::label,
           "The feature with the target: a class number, or values; default: image/class/label, label or y.")
      .key("weight", &TfRecordOptions::weight,
           "The feature with the sample's weight, by which loss and metrics are averaged; default: all weights are 1. "
           "It may be missing in validation and test.")
      .key("features", &TfRecordOptions::features,
           "Features of numbers, which are concatenated to the sample, instead of an image.")
      .key("raw_shape", &TfRecordOptions::raw_shape,
           "The height, width and channels of images whose bytes are their values, instead of an image file.",
           at_least(1))
      .exclusive({"features", "image"})
      .exclusive({"features", "raw_shape"});
}

}  // namespace trainctl
