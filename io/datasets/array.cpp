// Conversion of stored elements, and the data set of two arrays.
#include "io/datasets/array.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/format.h"
#include "io/datasets/fingerprint.h"

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
T load(const std::byte* from, bool swap) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <class T, class To>
void convert_elements(const std::byte* from, bool swap, std::int64_t count, To* to) {
  for (std::int64_t i = 0; i < count; ++i, from += sizeof(T)) to[i] = static_cast<To>(load<T>(from, swap));
}

template <class T, class To>
void convert_as(const Array& array, std::int64_t first, std::int64_t count, To* to) {
  constexpr auto each = static_cast<std::int64_t>(sizeof(T));
  if (const std::byte* memory = array.bytes.in_memory()) {
    return convert_elements<T>(memory + first * each, array.big_endian, count, to);
  }
  std::byte piece[16384];
  constexpr std::int64_t most = sizeof piece / each;
  for (std::int64_t done = 0; done < count; done += most) {
    const std::int64_t now = std::min(most, count - done);
    array.bytes.read((first + done) * each, piece, now * each);
    convert_elements<T>(piece, array.big_endian, now, to + done);
  }
}

template <class To>
void convert_to(const Array& array, std::int64_t first, std::int64_t count, To* to) {
  switch (array.type) {
    case ElementType::uint8:
      return convert_as<std::uint8_t>(array, first, count, to);
    case ElementType::int8:
      return convert_as<std::int8_t>(array, first, count, to);
    case ElementType::uint16:
      return convert_as<std::uint16_t>(array, first, count, to);
    case ElementType::int16:
      return convert_as<std::int16_t>(array, first, count, to);
    case ElementType::uint32:
      return convert_as<std::uint32_t>(array, first, count, to);
    case ElementType::int32:
      return convert_as<std::int32_t>(array, first, count, to);
    case ElementType::uint64:
      return convert_as<std::uint64_t>(array, first, count, to);
    case ElementType::int64:
      return convert_as<std::int64_t>(array, first, count, to);
    case ElementType::float32:
      return convert_as<float>(array, first, count, to);
    case ElementType::float64:
      return convert_as<double>(array, first, count, to);
  }
}

// The classes of all samples, checked.
std::vector<std::int32_t> read_labels(const Array& y, const StatedFacts& stated) {
  const std::int64_t n = y.shape.count(), each = n / y.shape[0];
  std::vector<std::int64_t> wide(static_cast<std::size_t>(n));
  convert(y, 0, n, wide.data());
  const std::int64_t limit = stated.known_classes().value_or(std::numeric_limits<std::int32_t>::max());
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t label = wide[static_cast<std::size_t>(i)];
    if (label >= 0 && label < limit) continue;
    if (stated.training && label >= 0) {
      data_error(y.path,
                 format("sample {} has class {}; the training part has {} classes, from 0", i / each, label, limit));
    }
    data_error(
        y.path, format("sample {} has label {}, which is not in 0 to {}", i / each, label, limit - 1),
        label >= 0 && stated.classes ? "state the right number of `classes`" : "store classes as numbers from 0");
  }
  return {wide.begin(), wide.end()};
}

// Shape, type and content, for fingerprints.
std::string describe(const Array& array) {
  return format("{} of {}{} {:016x}", to_string(array.shape), array.big_endian ? "big-endian type " : "type ",
                static_cast<int>(array.type), content_hash(array.bytes));
}

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(Array x, Array y, const StatedFacts& stated, std::vector<std::string> class_names,
               const std::optional<Array>& weights)
      : x_(std::move(x)), y_(std::move(y)), size_(x_.shape[0]) {
    facts_.class_names = std::move(class_names);
    facts_.sample = x_.shape.rank() == 1 ? Shape{1} : x_.shape.without_front();
    count_ = facts_.sample.count();
    const bool other_rank = stated.sample && stated.sample->rank() != facts_.sample.rank();
    if (other_rank && stated.sample->count() == count_) facts_.sample = *stated.sample;
    read_targets(stated);
    tokens_ = is_integer(x_.type) ? stated.use.tokens : 0;
    facts_.dtype = tokens_ > 0 ? DType::int32 : x_.type == ElementType::uint8 ? DType::uint8 : DType::float32;
    facts_.fingerprint = describe(x_) + ", " + describe(y_);
    if (weights) {
      keep_weights(*weights, stated);
    } else if (stated.training) {
      facts_.weight = stated.training->weight;
    }
    const std::byte* memory = x_.bytes.in_memory();
    direct_ = x_.type == ElementType::uint8 ||
              (x_.type == ElementType::float32 && !x_.big_endian && reinterpret_cast<std::uintptr_t>(memory) % 4 == 0);
  }

  const DatasetFacts& facts() const override { return facts_; }
  std::int64_t size() const override { return size_; }
  bool in_memory() const override { return x_.bytes.in_memory() != nullptr; }
  std::string name_of(std::int64_t index) const override { return format("{}, sample {}", x_.path, index); }
  std::int32_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    const std::int64_t each = facts_.target.count();
    std::copy_n(labels_.begin() + index * each, each, labels);
  }
  void read_weights(std::int64_t index, float* weights) const override {
    const std::int64_t each = facts_.weight.count();
    if (weights_.empty()) {
      std::fill_n(weights, each, 1.0f);
    } else {
      std::copy_n(weights_.begin() + index * each, each, weights);
    }
  }

  void read(std::int64_t index, Sample& sample) const override {
    sample.shape = facts_.sample;
    sample.dtype = facts_.dtype;
    const std::int64_t bytes = count_ * x_.element_bytes();
    if (tokens_ > 0) {
      read_tokens(index, sample);
    } else if (direct_ && in_memory()) {
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
    if (facts_.classes == 0) {
      const std::int64_t values = facts_.target.count();
      sample.target_buffer.resize(static_cast<std::size_t>(values));
      convert(y_, index * values, values, sample.target_buffer.data());
      sample.target = sample.target_buffer.data();
    }
  }

 private:
  void keep_weights(const Array& weights, const StatedFacts& stated) {
    if (weights.shape.rank() == 0 || weights.shape[0] != size_ || weights.shape.count() == 0) {
      data_error(weights.path, format("holds weights of shape {} for the {} samples in {}", to_string(weights.shape),
                                      size_, x_.path));
    }
    facts_.weight = weights.shape.without_front();
    if (stated.training && !(stated.training->weight == facts_.weight)) {
      data_error(weights.path, format("holds weights of shape {} for each sample, the training part {}",
                                      to_string(facts_.weight), to_string(stated.training->weight)));
    }
    weights_.resize(static_cast<std::size_t>(weights.shape.count()));
    convert(weights, 0, weights.shape.count(), weights_.data());
    const auto wrong = std::find_if_not(weights_.begin(), weights_.end(),
                                        [](float weight) { return weight >= 0 && std::isfinite(weight); });
    if (wrong != weights_.end()) {
      data_error(weights.path,
                 format("sample {} has weight {}", (wrong - weights_.begin()) / facts_.weight.count(), *wrong),
                 "weights are finite, and 0 at least");
    }
    facts_.fingerprint += ", " + describe(weights);
  }

  void read_tokens(std::int64_t index, Sample& sample) const {
    sample.scratch.resize(static_cast<std::size_t>(count_) * sizeof(std::int64_t));
    sample.buffer.resize(static_cast<std::size_t>(count_) * sizeof(std::int32_t));
    auto* wide = reinterpret_cast<std::int64_t*>(sample.scratch.data());
    auto* tokens = reinterpret_cast<std::int32_t*>(sample.buffer.data());
    convert(x_, index * count_, count_, wide);
    for (std::int64_t i = 0; i < count_; ++i) {
      if (wide[i] < 0 || wide[i] >= tokens_) {
        data_error(name_of(index), format("holds token {}, and the embedding has 0 to {}", wide[i], tokens_ - 1),
                   "state a larger input_dim, or store tokens as numbers from 0");
      }
      tokens[i] = static_cast<std::int32_t>(wide[i]);
    }
    sample.values = sample.buffer.data();
  }

  void read_targets(const StatedFacts& stated) {
    if (y_.shape.rank() == 0 || y_.shape[0] != size_) {
      data_error(y_.path,
                 format("holds targets of shape {} for the {} samples in {}", to_string(y_.shape), size_, x_.path));
    }
    const std::optional<std::int64_t> classes = stated.known_classes();
    const std::int64_t each = y_.shape.count() / size_;
    if (each == 0) data_error(y_.path, format("of shape {} holds no values", to_string(y_.shape)));
    const bool named = !facts_.class_names.empty();
    const bool whole = is_integer(y_.type) && (each == 1 || stated.use.class_numbers);
    if (whole && classes != 0 && (classes || named || !stated.use.target_values)) {
      labels_ = trainctl::read_labels(y_, stated);
      if (each > 1) facts_.target = y_.shape.without_front();
      check_target(stated);
      const std::int64_t found =
          named ? std::ssize(facts_.class_names) : 1 + *std::max_element(labels_.begin(), labels_.end());
      facts_.classes = classes.value_or(found);
      return;
    }
    if (classes.value_or(0) > 0) {
      data_error(y_.path, format("holds {} values of targets for each sample, where a class number is expected", each),
                 "store classes as integers from 0, or state `classes: 0`");
    }
    facts_.target = Shape{each};
    check_target(stated);
  }

  void check_target(const StatedFacts& stated) const {
    if (!stated.training || stated.training->target == facts_.target) return;
    data_error(y_.path, format("holds {} values of targets for each sample, the training part {}",
                               facts_.target.count(), stated.training->target.count()));
  }

  Array x_, y_;
  std::int64_t size_ = 0, count_ = 0;
  DatasetFacts facts_;
  std::vector<std::int32_t> labels_;
  std::vector<float> weights_;  // empty: all are 1
  std::int64_t tokens_ = 0;     // samples are tokens below this
  bool direct_ = false;         // samples are used as they are stored
};

}  // namespace

std::int64_t size_of(ElementType type) {
  switch (type) {
    case ElementType::uint8:
    case ElementType::int8:
      return 1;
    case ElementType::uint16:
    case ElementType::int16:
      return 2;
    case ElementType::uint32:
    case ElementType::int32:
    case ElementType::float32:
      return 4;
    case ElementType::uint64:
    case ElementType::int64:
    case ElementType::float64:
      return 8;
  }
  return 0;
}

void convert(const Array& array, std::int64_t first, std::int64_t count, float* to) {
  convert_to(array, first, count, to);
}
void convert(const Array& array, std::int64_t first, std::int64_t count, std::int64_t* to) {
  require(is_integer(array.type), "labels are read from integers");
  convert_to(array, first, count, to);
}

std::int64_t checked_bytes(const Shape& shape, std::int64_t element_bytes, const std::string& path) {
  constexpr std::int64_t most = std::int64_t{1} << 60;
  std::int64_t bytes = element_bytes;
  for (std::int64_t size : shape.sizes()) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes) || bytes > most) {
      data_error(path, "its header states an impossible shape", "get the file again");
    }
  }
  return bytes;
}

std::shared_ptr<const Dataset> array_dataset(Array x, Array y, const StatedFacts& stated,
                                             std::vector<std::string> class_names, std::optional<Array> weights) {
  if (x.shape.rank() == 0 || x.shape.count() == 0) data_error(x.path, "holds no samples");
  return std::make_shared<ArrayDataset>(std::move(x), std::move(y), stated, std::move(class_names), weights);
}

}  // namespace trainctl
