// Generates samples with the Philox random number generator.
#include "io/datasets/synthetic.h"
#include "io/datasets/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/format.h"
#include "core/base/random.h"

namespace trainctl {
namespace {

constexpr std::uint32_t pattern_stream = 1, noise_stream = 2;

// A byte b of a pattern or of noise means the value byte_step * b - 1. A sample's byte is half the sum of the pattern's
// and the noise's bytes, and means the sum of their values.
constexpr double byte_step = 1.0 / 128;

// Adds uniform values in [-1, 1) to `values`.
void add_uniform(const RandomKey& key, std::uint64_t row, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; i += 4) {
    const PhiloxBlock block = key.block(row, static_cast<std::uint32_t>(i / 4));
    const std::int64_t n = std::min<std::int64_t>(4, count - i);
    for (std::int64_t j = 0; j < n; ++j) values[i + j] += 2 * uniform01(block[static_cast<std::size_t>(j)]) - 1;
  }
}

void fill_bytes(const RandomKey& key, std::uint64_t row, std::int64_t count, std::uint8_t* bytes) {
  constexpr std::int64_t block_bytes = sizeof(PhiloxBlock);
  for (std::int64_t i = 0; i < count; i += block_bytes) {
    const PhiloxBlock block = key.block(row, static_cast<std::uint32_t>(i / block_bytes));
    std::memcpy(bytes + i, block.data(), static_cast<std::size_t>(std::min(block_bytes, count - i)));
  }
}

void require_memory(std::int64_t bytes) {
  const std::int64_t memory = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (bytes <= memory) return;
  throw Error(
      ErrorKind::resource,
      format("synthetic data: {} of memory are needed, and this machine has {}", byte_text(bytes), byte_text(memory)),
      "use a smaller `shape`, or fewer `classes`");
}

class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(const Shape& shape, DType dtype, std::int64_t classes, std::int64_t first, std::int64_t size,
                   std::uint64_t seed)
      : classes_(classes),
        first_(first),
        size_(size),
        count_(shape.count()),
        pattern_{seed, Purpose::synthetic, 0, pattern_stream},
        noise_{seed, Purpose::synthetic, 0, noise_stream} {
    info_.sample = shape;
    info_.dtype = dtype;
    info_.classes = classes;
    if (classes == 0) info_.target = Shape{1};
    info_.fingerprint =
        format("synthetic {} {} {} {} {} {}", trainctl::name_of(dtype), to_string(shape), classes, first, size, seed);
    require_memory(checked_multiply(count_, size_of(DType::float32)));
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }
  bool in_memory() const override { return false; }
  std::string name_of(std::int64_t index) const override { return format("synthetic sample {}", first_ + index); }
  std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>((first_ + index) % classes_);
  }

 protected:
  std::int64_t pattern_number(std::int64_t index) const { return classes_ > 0 ? label(index) : 0; }
  std::uint64_t row(std::int64_t index) const { return static_cast<std::uint64_t>(first_ + index); }
  void set_target(double sum_of_products, Sample& sample) const {
    sample.target_buffer.assign(1, static_cast<float>(sum_of_products / static_cast<double>(count_)));
    sample.target = sample.target_buffer.data();
  }

  std::int64_t classes_, first_, size_, count_;
  RandomKey pattern_, noise_;
  DatasetInfo info_;
};

class SyntheticValues final : public SyntheticDataset {
 public:
  SyntheticValues(const Shape& shape, std::int64_t classes, std::int64_t first, std::int64_t size, std::uint64_t seed)
      : SyntheticDataset(shape, DType::float32, classes, first, size, seed) {
    const std::int64_t patterns = std::max<std::int64_t>(1, classes);
    require_memory(patterns * static_cast<std::int64_t>(sizeof(Pattern)));
    patterns_ = std::make_unique<Pattern[]>(static_cast<std::size_t>(patterns));
  }

  void read(std::int64_t index, Sample& sample) const override {
    sample.shape = info_.sample;
    sample.dtype = DType::float32;
    sample.buffer.resize(static_cast<std::size_t>(count_) * sizeof(float));
    auto* values = reinterpret_cast<float*>(sample.buffer.data());
    std::fill_n(values, count_, 0.0f);
    const std::vector<float>& pattern = pattern_values(pattern_number(index));
    if (classes_ > 0) std::copy_n(pattern.data(), count_, values);
    add_uniform(noise_, row(index), count_, values);
    sample.values = values;
    if (classes_ > 0) return;
    double product = 0;
    for (std::int64_t i = 0; i < count_; ++i)
      product += double{values[i]} * double{pattern[static_cast<std::size_t>(i)]};
    set_target(product, sample);
  }

 private:
  // Generated on first use, so that a data set takes no memory if only its info is used.
  struct Pattern {
    std::once_flag made;
    std::vector<float> values;
  };

  const std::vector<float>& pattern_values(std::int64_t number) const {
    Pattern& pattern = patterns_[static_cast<std::size_t>(number)];
    std::call_once(pattern.made, [&] {
      pattern.values.resize(static_cast<std::size_t>(count_));
      add_uniform(pattern_, static_cast<std::uint64_t>(number), count_, pattern.values.data());
    });
    return pattern.values;
  }

  std::unique_ptr<Pattern[]> patterns_;
};

// Generates the pattern again for each sample, which takes no longer than generating the sample's noise.
class SyntheticImages final : public SyntheticDataset {
 public:
  SyntheticImages(const Shape& shape, std::int64_t classes, std::int64_t first, std::int64_t size, std::uint64_t seed)
      : SyntheticDataset(shape, DType::uint8, classes, first, size, seed) {
    info_.scale = 2 * byte_step;
    info_.offset = -2;
  }

  void read(std::int64_t index, Sample& sample) const override {
    sample.shape = info_.sample;
    sample.dtype = DType::uint8;
    sample.buffer.resize(static_cast<std::size_t>(2 * count_));
    auto* values = reinterpret_cast<std::uint8_t*>(sample.buffer.data());
    std::uint8_t* pattern = values + count_;
    fill_bytes(noise_, row(index), count_, values);
    fill_bytes(pattern_, static_cast<std::uint64_t>(pattern_number(index)), count_, pattern);
    sample.values = values;
    const auto half_sum = [](int a, int b) { return static_cast<std::uint8_t>((a + b) / 2); };
    if (classes_ > 0) {
      for (std::int64_t i = 0; i < count_; ++i) values[i] = half_sum(values[i], pattern[i]);
      return;
    }
    constexpr int zero = 128;  // the byte that means the value 0
    double product = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      values[i] = half_sum(values[i], zero);
      product += (info_.scale * values[i] + info_.offset) * (byte_step * pattern[i] - 1);
    }
    set_target(product, sample);
  }
};

struct SyntheticOptions final : DatasetOptions {
  SyntheticOptions() { samples = 1024; }

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                      std::uint64_t seed) const override {
    const std::int64_t vocabulary = declared.use.tokens;
    if (!declared.sample || !(declared.training || declared.classes || vocabulary > 0)) {
      throw Error(ErrorKind::config, "synthetic data needs `shape` and `classes`");
    }
    // Offset of the split's samples in the endless sequence.
    const std::int64_t first = static_cast<std::int64_t>(split) * max_synthetic_samples;
    const std::int64_t size = where.samples.value_or(*samples);
    if (vocabulary == 0) return synthetic_dataset(*declared.sample, *declared.known_classes(), first, size, seed);
    std::optional<std::int64_t> classes = declared.known_classes();
    if (declared.training != nullptr ? declared.training->target == *declared.sample : classes == vocabulary) {
      classes.reset();
    }
    return synthetic_tokens({*declared.sample, vocabulary, classes}, first, size, seed);
  }
};

}  // namespace

std::shared_ptr<const Dataset> synthetic_dataset(const Shape& shape, std::int64_t classes, std::int64_t first,
                                                 std::int64_t size, std::uint64_t seed) {
  if (shape.rank() == 3) return std::make_shared<SyntheticImages>(shape, classes, first, size, seed);
  return std::make_shared<SyntheticValues>(shape, classes, first, size, seed);
}

Section synthetic_choice() {
  return Keys<SyntheticOptions>(
             "synthetic",
             "Generated samples that can be learnt, determined by the seed; needs `shape` and `classes` (0: values). "
             "If the "
             "network begins with an embedding, the samples are tokens, and without `classes`, or with as many as the "
             "embedding has rows, the target of each position is the token that follows.")
      .key("samples", &SyntheticOptions::samples, "Number of samples.", between(1, max_synthetic_samples));
}

}  // namespace trainctl
