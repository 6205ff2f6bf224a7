// Samples made from Philox blocks.
#include "io/datasets/synthetic.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "core/base/format.h"
#include "core/base/random.h"

namespace trainctl {
namespace {

constexpr std::uint32_t of_pattern = 1, of_noise = 2;

// Adds values in [-1, 1) to what is there.
void add_uniform(const RandomKey& key, std::uint64_t row, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; i += 4) {
    const PhiloxBlock block = key.block(row, static_cast<std::uint32_t>(i / 4));
    const std::int64_t n = std::min<std::int64_t>(4, count - i);
    for (std::int64_t j = 0; j < n; ++j) values[i + j] += 2 * uniform01(block[static_cast<std::size_t>(j)]) - 1;
  }
}

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(const Shape& shape, std::int64_t classes, std::int64_t first, std::int64_t size, std::uint64_t seed)
      : classes_(classes),
        first_(first),
        size_(size),
        count_(shape.count()),
        noise_{seed, Purpose::synthetic, 0, of_noise},
        pattern_key_{seed, Purpose::synthetic, 0, of_pattern} {
    facts_.sample = shape;
    facts_.dtype = DType::float32;
    facts_.classes = classes;
    if (classes == 0) facts_.target = Shape{1};
    facts_.fingerprint = format("synthetic {} {} {} {} {}", to_string(shape), classes, first, size, seed);
    require_memory(checked_multiply(count_, size_of(DType::float32)));
    const std::int64_t patterns = std::max<std::int64_t>(1, classes);
    require_memory(patterns * static_cast<std::int64_t>(sizeof(Pattern)));
    patterns_ = std::make_unique<Pattern[]>(static_cast<std::size_t>(patterns));
  }

  const DatasetFacts& facts() const override { return facts_; }
  std::int64_t size() const override { return size_; }
  bool in_memory() const override { return false; }
  std::string name_of(std::int64_t index) const override { return format("synthetic sample {}", first_ + index); }
  std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>((first_ + index) % classes_);
  }

  void read(std::int64_t index, Sample& sample) const override {
    sample.shape = facts_.sample;
    sample.dtype = DType::float32;
    sample.buffer.resize(static_cast<std::size_t>(count_) * sizeof(float));
    auto* values = reinterpret_cast<float*>(sample.buffer.data());
    std::fill_n(values, count_, 0.0f);
    const std::vector<float>& pattern = pattern_of(classes_ > 0 ? label(index) : 0);
    if (classes_ > 0) std::copy_n(pattern.data(), count_, values);
    add_uniform(noise_, static_cast<std::uint64_t>(first_ + index), count_, values);
    sample.values = values;
    if (classes_ > 0) return;
    double product = 0;
    for (std::int64_t i = 0; i < count_; ++i)
      product += double{values[i]} * double{pattern[static_cast<std::size_t>(i)]};
    sample.target_buffer.assign(1, static_cast<float>(product / static_cast<double>(count_)));
    sample.target = sample.target_buffer.data();
  }

 private:
  // Made when it is wanted first: a data set that is only looked at takes no memory.
  struct Pattern {
    std::once_flag made;
    std::vector<float> values;
  };

  const std::vector<float>& pattern_of(std::int64_t c) const {
    Pattern& pattern = patterns_[static_cast<std::size_t>(c)];
    std::call_once(pattern.made, [&] {
      pattern.values.resize(static_cast<std::size_t>(count_));
      add_uniform(pattern_key_, static_cast<std::uint64_t>(c), count_, pattern.values.data());
    });
    return pattern.values;
  }

  static void require_memory(std::int64_t bytes) {
    const std::int64_t all = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    if (bytes <= all) return;
    throw Error(ErrorKind::resource,
                format("synthetic data: {} are needed, and this machine has {}", byte_text(bytes), byte_text(all)),
                "use a smaller `shape`, or fewer `classes`");
  }

  std::int64_t classes_, first_, size_, count_;
  RandomKey noise_, pattern_key_;
  DatasetFacts facts_;
  std::unique_ptr<Pattern[]> patterns_;
};

}  // namespace

std::shared_ptr<const Dataset> synthetic_dataset(const Shape& shape, std::int64_t classes, std::int64_t first,
                                                 std::int64_t size, std::uint64_t seed) {
  return std::make_shared<SyntheticDataset>(shape, classes, first, size, seed);
}

}  // namespace trainctl
