// Draws a token from the softmax of the logits, by the inverse of its cumulative distribution.
#include "run/generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"

namespace trainctl {
namespace {

struct Candidate {
  double weight;  // first the logit, then the probability before it is divided by the sum
  TokenId token;
};

bool likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

// The tokens from which one is drawn, with their logits: the likeliest first if top_k or top_p choose among them.
std::vector<Candidate> candidates_of(std::span<const float> logits, const SamplingOptions& options) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i])) all.push_back({logits[i], static_cast<TokenId>(i)});
  }
  if (all.empty()) {
    throw Error(ErrorKind::data, "all values that the network computes for the next token are NaN",
                "choose an earlier checkpoint, whose weights are finite");
  }
  if (options.temperature == 0) return {*std::min_element(all.begin(), all.end(), likelier)};
  if (options.top_k == 0 && options.top_p >= 1) return all;
  const auto most = options.top_k == 0 ? all.size() : static_cast<std::size_t>(options.top_k);
  const std::size_t kept = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(), likelier);
  all.resize(kept);
  return all;
}

// Replaces the logits by weights that are proportional to the probabilities. Returns their sum.
double weigh(std::vector<Candidate>& candidates, double temperature) {
  const double largest = std::min_element(candidates.begin(), candidates.end(), likelier)->weight;
  double sum = 0;
  for (Candidate& candidate : candidates) {
    // The difference of two infinite logits is not a number.
    const double difference = candidate.weight == largest ? 0 : candidate.weight - largest;
    candidate.weight = std::exp(difference / temperature);
    sum += candidate.weight;
  }
  return sum;
}

// A number in [0, 1) with 53 random bits.
double uniform(const SamplingOptions& options, std::int64_t text, std::int64_t position) {
  const RandomKey key{options.seed, Purpose::generate, static_cast<std::uint32_t>(position), 0};
  const PhiloxBlock words = key.block(static_cast<std::uint64_t>(text));
  const std::uint64_t bits = (std::uint64_t{words[0]} << 21) ^ (words[1] >> 11);
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

TokenId choose_token(std::span<const float> logits, const SamplingOptions& options, std::int64_t text,
                     std::int64_t position) {
  std::vector<Candidate> candidates = candidates_of(logits, options);
  if (candidates.size() == 1) return candidates[0].token;
  double sum = weigh(candidates, options.temperature);
  if (options.top_p < 1) {
    double kept = 0;
    std::size_t count = 0;
    while (count < candidates.size() && kept < options.top_p * sum) kept += candidates[count++].weight;
    candidates.resize(std::max<std::size_t>(count, 1));
    sum = kept;
  }
  double left = uniform(options, text, position) * sum;
  for (const Candidate& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  return candidates.back().token;  // only by rounding
}

}  // namespace trainctl
