// Makes data sets of arrays of samples, targets and weights.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/array.h"
#include "io/datasets/fingerprint.h"

namespace trainctl {
namespace {

// Returns the classes of all samples. Throws Error{data} for labels out of range, except the ignored one.
std::vector<std::int32_t> read_labels(const Array& y, const DeclaredInfo& declared) {
  const std::int64_t n = y.shape.count(), each = n / y.shape[0];
  std::vector<std::int64_t> wide(static_cast<std::size_t>(n));
  convert(y, 0, n, wide.data());
  const std::int64_t limit = declared.known_classes().value_or(std::numeric_limits<std::int32_t>::max());
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t label = wide[static_cast<std::size_t>(i)];
    if ((label >= 0 && label < limit) || label == declared.use.ignored) continue;
    if (declared.training && label >= 0) {
      data_error(y.path, format("sample {} has class {}; the training split has {}, from 0", i / each, label,
                                counted(limit, "class")));
    }
    data_error(
        y.path, format("sample {} has label {}, which is not in 0 to {}", i / each, label, limit - 1),
        label >= 0 && declared.classes ? "set the right number of `classes`" : "store classes as numbers from 0");
  }
  return {wide.begin(), wide.end()};
}

// The shape, type and content of an array as text, for fingerprints.
std::string describe(const Array& array) {
  return format("{} of {}{} {:016x}", to_string(array.shape), array.big_endian ? "big-endian type " : "type ",
                static_cast<int>(array.type), content_hash(array.bytes));
}

std::string sample_name(const Array& x, std::int64_t index) { return format("{}, sample {}", x.path, index); }

// The samples of an array x [n, ...].
class ArrayInput {
 public:
  ArrayInput(Array x, const DeclaredInfo& declared, DatasetInfo& info) : x_(std::move(x)) {
    info.sample = x_.shape.rank() == 1 ? Shape{1} : x_.shape.without_front();
    count_ = info.sample.count();
    const bool other_rank = declared.sample && declared.sample->rank() != info.sample.rank();
    if (other_rank && declared.sample->count() == count_) info.sample = *declared.sample;
    tokens_ = is_integer(x_.type) ? declared.use.tokens : 0;
    info.dtype = tokens_ > 0 ? DType::int32 : x_.type == ElementType::uint8 ? DType::uint8 : DType::float32;
    const std::byte* memory = x_.bytes.in_memory();
    direct_ = x_.type == ElementType::uint8 ||
              (x_.type == ElementType::float32 && !x_.big_endian && reinterpret_cast<std::uintptr_t>(memory) % 4 == 0);
  }

  const Array& array() const { return x_; }

  void read(std::int64_t index, const DatasetInfo& info, Sample& sample) const {
    sample.shape = info.sample;
    sample.dtype = info.dtype;
    const std::int64_t bytes = count_ * x_.element_bytes();
    if (tokens_ > 0) {
      read_tokens(index, sample);
    } else if (direct_ && x_.bytes.in_memory() != nullptr) {
      sample.values = x_.bytes.in_memory() + index * bytes;
    } else if (direct_) {
      sample.buffer.resize(static_cast<std::size_t>(bytes));
      x_.bytes.read(index * bytes, sample.buffer.data(), bytes);
      sample.values = sample.buffer.data();
    } else {
      sample.buffer.resize(static_cast<std::size_t>(count_) * sizeof(float));
      convert(x_, index * count_, count_, reinterpret_cast<float*>(sample.buffer.data()));
      sample.values = sample.buffer.data();
    }
  }

 private:
  void read_tokens(std::int64_t index, Sample& sample) const {
    sample.scratch.resize(static_cast<std::size_t>(count_) * sizeof(std::int64_t));
    sample.buffer.resize(static_cast<std::size_t>(count_) * sizeof(std::int32_t));
    auto* wide = reinterpret_cast<std::int64_t*>(sample.scratch.data());
    auto* tokens = reinterpret_cast<std::int32_t*>(sample.buffer.data());
    convert(x_, index * count_, count_, wide);
    for (std::int64_t i = 0; i < count_; ++i) {
      if (wide[i] < 0 || wide[i] >= tokens_) {
        data_error(sample_name(x_, index),
                   format("holds token {}, and the embedding has 0 to {}", wide[i], tokens_ - 1),
                   "set a larger input_dim, or store tokens as numbers from 0");
      }
      tokens[i] = static_cast<std::int32_t>(wide[i]);
    }
    sample.values = sample.buffer.data();
  }

  Array x_;
  std::int64_t count_ = 0;
  std::int64_t tokens_ = 0;  // samples are tokens, whole numbers below this; 0: values
  bool direct_ = false;      // samples are used in their stored type
};

// A warning if whole numbers among the targets are rounded, which names the first of them; "" otherwise. float32 has
// all whole numbers up to 2^24, and of larger ones only those with at most 24 digits in base 2 before the zeros at the
// end.
std::string rounding_warning(const Array& y) {
  if (!is_integer(y.type) || y.element_bytes() < 4) return "";
  const std::int64_t n = y.shape.count(), each = n / y.shape[0];
  constexpr std::int64_t at_once = 4096;
  std::vector<std::int64_t> values(static_cast<std::size_t>(std::min(n, at_once)));
  for (std::int64_t first = 0; first < n; first += at_once) {
    const std::int64_t count = std::min(at_once, n - first);
    convert(y, first, count, values.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t value = values[static_cast<std::size_t>(i)];
      const bool is_negative = value < 0 && y.type != ElementType::uint64;
      const auto bits = is_negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
      if (bits == 0 || std::bit_width(bits) - std::countr_zero(bits) <= std::numeric_limits<float>::digits) continue;
      return format(
          "{}: the target {}{} is {:.0f} as float32, which does not have all whole numbers above {}: "
          "subtract a constant from the targets",
          sample_name(y, (first + i) / each), is_negative ? "-" : "", bits,
          static_cast<float>(bits) * (is_negative ? -1 : 1), 1 << std::numeric_limits<float>::digits);
    }
  }
  return "";
}

// The shape [P...] of a sample's positions in an array of class numbers [n, P...] or [n, P..., 1].
Shape positions_of(const Shape& y) {
  std::vector<std::int64_t> positions(y.sizes().begin() + 1, y.sizes().end());
  if (positions.size() > 1 && positions.back() == 1) positions.pop_back();
  return Shape(std::move(positions));
}

// The targets in an array y.
class ArrayTarget {
 public:
  // `samples` is the path of the samples, for messages.
  ArrayTarget(Array y, std::int64_t size, const std::string& samples, const DeclaredInfo& declared, DatasetInfo& info)
      : y_(std::move(y)) {
    if (y_.shape.rank() == 0 || y_.shape[0] != size) {
      data_error(y_.path, format("holds targets of shape {} for the {} in {}", to_string(y_.shape),
                                 counted(size, "sample"), samples));
    }
    const std::optional<std::int64_t> classes = declared.known_classes();
    const std::int64_t each = y_.shape.count() / size;
    if (each == 0) data_error(y_.path, format("has shape {}, which holds no values", to_string(y_.shape)));
    const bool named = !info.class_names.empty();
    const bool whole = is_integer(y_.type) && (each == 1 || declared.use.class_numbers);
    if (whole && classes != 0 && (classes || named || !declared.use.target_values)) {
      labels_ = trainctl::read_labels(y_, declared);
      if (each > 1) info.target = positions_of(y_.shape);
      check_target(declared, info);
      info.classes = classes.value_or(named ? std::ssize(info.class_names) : 1 + largest_class(declared.use.ignored));
      return;
    }
    if (classes.value_or(0) > 0) {
      data_error(y_.path,
                 format("holds {} of targets for each sample, but a class number is expected", counted(each, "value")),
                 format("store classes as integers from 0, or set `classes: 0`{}",
                        is_integer(y_.type) ? "; if each position of the output has a class, use "
                                              "sparse_categorical_crossentropy"
                                            : ""));
    }
    info.target = Shape{each};
    check_target(declared, info);
    if (!declared.training) info.warning = rounding_warning(y_);
  }

  const Array& array() const { return y_; }
  // The class of a sample or of its first position. Only for targets that are classes.
  std::int32_t label(std::int64_t index, const DatasetInfo& info) const {
    return labels_[static_cast<std::size_t>(index * info.target.count())];
  }
  // Writes the classes of all positions of a sample. Only for targets that are classes.
  void read_labels(std::int64_t index, const DatasetInfo& info, std::int32_t* labels) const {
    const std::int64_t each = info.target.count();
    std::copy_n(labels_.begin() + index * each, each, labels);
  }
  // Reads the values of a sample's target. Only for targets that are values.
  void read(std::int64_t index, const DatasetInfo& info, Sample& sample) const {
    const std::int64_t values = info.target.count();
    sample.target_buffer.resize(static_cast<std::size_t>(values));
    convert(y_, index * values, values, sample.target_buffer.data());
    sample.target = sample.target_buffer.data();
  }

 private:
  void check_target(const DeclaredInfo& declared, const DatasetInfo& info) const {
    if (!declared.training || declared.training->target == info.target) return;
    data_error(y_.path, format("holds {} of targets for each sample, but the training split has {}",
                               counted(info.target.count(), "value"), grouped(declared.training->target.count())));
  }

  // The largest class; -1 if there is none.
  std::int32_t largest_class(const std::optional<std::int64_t>& ignored) const {
    std::int32_t largest = -1;
    for (const std::int32_t label : labels_) {
      if (label != ignored) largest = std::max(largest, label);
    }
    return largest;
  }

  Array y_;
  std::vector<std::int32_t> labels_;
};

// The data set of arrays: samples, targets, or both.
class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(std::optional<Array> x, std::optional<Array> y, const DeclaredInfo& declared,
               std::vector<std::string> class_names, const std::optional<Array>& weights) {
    const Array& first = x ? *x : *y;
    if (first.shape.rank() == 0 || first.shape.count() == 0) data_error(first.path, "holds no samples");
    path_ = first.path;
    size_ = first.shape[0];
    in_memory_ = first.bytes.in_memory() != nullptr;
    info_.class_names = std::move(class_names);
    info_.sample = info_.target = Shape{0};
    if (x) input_.emplace(std::move(*x), declared, info_);
    if (y) {
      info_.target = {};
      target_.emplace(std::move(*y), size_, path_, declared, info_);
    }
    if (input_) info_.fingerprint = describe(input_->array());
    if (target_) info_.fingerprint += (input_ ? ", " : "") + describe(target_->array());
    if (weights) {
      keep_weights(*weights, declared);
    } else if (declared.training) {
      info_.weight = declared.training->weight;
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }
  bool in_memory() const override { return in_memory_; }
  std::string name_of(std::int64_t index) const override { return format("{}, sample {}", path_, index); }
  std::string target_name_of(std::int64_t index) const override {
    return target_ ? sample_name(target_->array(), index) : name_of(index);
  }
  std::int32_t label(std::int64_t index) const override { return target_->label(index, info_); }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    target_->read_labels(index, info_, labels);
  }
  void read_weights(std::int64_t index, float* weights) const override {
    const std::int64_t each = info_.weight.count();
    if (weights_.empty()) {
      std::fill_n(weights, each, 1.0f);
    } else {
      std::copy_n(weights_.begin() + index * each, each, weights);
    }
  }
  void read(std::int64_t index, Sample& sample) const override {
    if (input_) input_->read(index, info_, sample);
    if (target_ && info_.classes == 0) target_->read(index, info_, sample);
  }

 private:
  void keep_weights(const Array& weights, const DeclaredInfo& declared) {
    constexpr const char* wanted_weights = "weights must be finite and at least 0";
    if (weights.shape.rank() == 0 || weights.shape[0] != size_ || weights.shape.count() == 0) {
      data_error(weights.path, format("holds weights of shape {} for the {} in {}", to_string(weights.shape),
                                      counted(size_, "sample"), path_));
    }
    info_.weight = weights.shape.without_front();
    if (declared.training && !(declared.training->weight == info_.weight)) {
      data_error(weights.path, format("holds weights of shape {} for each sample, but the training split has shape {}",
                                      to_string(info_.weight), to_string(declared.training->weight)));
    }
    weights_.resize(static_cast<std::size_t>(weights.shape.count()));
    with_remedy(false, wanted_weights, [&] { convert(weights, 0, weights.shape.count(), weights_.data()); });
    const auto wrong = std::find_if_not(weights_.begin(), weights_.end(),
                                        [](float weight) { return weight >= 0 && std::isfinite(weight); });
    if (wrong != weights_.end()) {
      data_error(weights.path,
                 format("sample {} has weight {}", (wrong - weights_.begin()) / info_.weight.count(), *wrong),
                 wanted_weights);
    }
    info_.fingerprint += ", " + describe(weights);
  }

  std::string path_;  // for messages: the samples' path, or the targets' path in a data set without samples
  std::int64_t size_ = 0;
  bool in_memory_ = false;
  DatasetInfo info_;
  std::optional<ArrayInput> input_;
  std::optional<ArrayTarget> target_;
  std::vector<float> weights_;  // empty: all weights are 1
};

}  // namespace

std::shared_ptr<const Dataset> array_dataset(Array x, Array y, const DeclaredInfo& declared,
                                             std::vector<std::string> class_names, std::optional<Array> weights) {
  return std::make_shared<ArrayDataset>(std::move(x), std::move(y), declared, std::move(class_names), weights);
}

std::shared_ptr<const Dataset> array_inputs(Array x, const DeclaredInfo& declared, std::optional<Array> weights) {
  return std::make_shared<ArrayDataset>(std::move(x), std::nullopt, declared, std::vector<std::string>(), weights);
}

std::shared_ptr<const Dataset> array_targets(Array y, const DeclaredInfo& declared, std::optional<Array> weights,
                                             std::vector<std::string> class_names) {
  return std::make_shared<ArrayDataset>(std::nullopt, std::move(y), declared, std::move(class_names), weights);
}

}  // namespace trainctl
