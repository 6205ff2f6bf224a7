// Generates samples of tokens with the Philox random number generator.
#include <algorithm>

#include "core/base/format.h"
#include "core/base/random.h"
#include "io/datasets/synthetic.h"

namespace trainctl {
namespace {

constexpr std::uint32_t token_pattern_stream = 1, token_noise_stream = 2;
constexpr std::uint32_t tokens_of_class = 16;

class SyntheticTokens final : public Dataset {
 public:
  SyntheticTokens(const SyntheticTokenSizes& sizes, std::int64_t first, std::int64_t size, std::uint64_t seed)
      : vocabulary_(sizes.vocabulary),
        classes_(sizes.classes),
        next_tokens_(!sizes.classes),
        first_(first),
        size_(size),
        pattern_{seed, Purpose::synthetic, 0, token_pattern_stream},
        noise_{seed, Purpose::synthetic, 0, token_noise_stream} {
    info_.sample = sizes.shape;
    info_.dtype = DType::int32;
    info_.classes = sizes.classes.value_or(sizes.vocabulary);
    if (next_tokens_) {
      info_.target = info_.weight = sizes.shape;
      info_.ignores_positions = true;
    } else if (sizes.classes == 0) {
      info_.target = Shape{1};
    }
    info_.fingerprint = format("synthetic tokens {} below {} {} {} {} {}", to_string(sizes.shape), sizes.vocabulary,
                               sizes.classes.value_or(-1), first, size, seed);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }
  bool in_memory() const override { return false; }
  std::string name_of(std::int64_t index) const override { return format("synthetic sample {}", first_ + index); }
  std::int32_t label(std::int64_t index) const override {
    if (next_tokens_) return tokens_of(index)[1];
    return static_cast<std::int32_t>((first_ + index) % std::max<std::int64_t>(1, *classes_));
  }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    if (!next_tokens_) return Dataset::read_labels(index, labels);
    const std::vector<std::int32_t> tokens = tokens_of(index);
    std::copy(tokens.begin() + 1, tokens.end(), labels);
  }
  void read_weights(std::int64_t, float* weights) const override { std::fill_n(weights, info_.weight.count(), 1.0f); }

  void read(std::int64_t index, Sample& sample) const override {
    const std::vector<std::int32_t> tokens = tokens_of(index);
    const auto count = static_cast<std::size_t>(info_.sample.count());
    std::copy_n(tokens.begin(), count, sample.make_int32(info_.sample));
    if (next_tokens_ || *classes_ > 0) return;
    double sum = 0;
    for (const std::int32_t token : tokens) sum += 2 * uniform01(pattern_.block(number(token), 0)[0]) - 1;
    sample.target_buffer.assign(1, static_cast<float>(sum / static_cast<double>(count)));
    sample.target = sample.target_buffer.data();
  }

 private:
  static std::uint64_t number(std::int64_t of) { return static_cast<std::uint64_t>(of); }
  // A token other than 0, which is padding in many vocabularies.
  std::int32_t token_of(std::uint32_t word) const {
    return vocabulary_ < 2 ? 0 : static_cast<std::int32_t>(1 + word % static_cast<std::uint64_t>(vocabulary_ - 1));
  }

  // The tokens of a sample and, for targets that are the next tokens, the one after them.
  std::vector<std::int32_t> tokens_of(std::int64_t index) const {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(info_.sample.count() + (next_tokens_ ? 1 : 0)));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const PhiloxBlock noise = noise_.block(number(first_ + index), static_cast<std::uint32_t>(i));
      const bool is_random = i == 0 && next_tokens_ ? true : noise[1] % 4 == 0;
      if (is_random || classes_ == 0) {
        tokens[i] = token_of(noise[0]);
      } else if (next_tokens_) {
        tokens[i] = token_of(pattern_.block(number(tokens[i - 1]), 0)[0]);
      } else {
        tokens[i] = token_of(pattern_.block(number(label(index)), noise[0] % tokens_of_class)[0]);
      }
    }
    return tokens;
  }

  std::int64_t vocabulary_;
  std::optional<std::int64_t> classes_;
  bool next_tokens_;
  std::int64_t first_, size_;
  RandomKey pattern_, noise_;
  DatasetInfo info_;
};

}  // namespace

std::shared_ptr<const Dataset> synthetic_tokens(const SyntheticTokenSizes& sizes, std::int64_t first, std::int64_t size,
                                                std::uint64_t seed) {
  return std::make_shared<SyntheticTokens>(sizes, first, size, seed);
}

}  // namespace trainctl
