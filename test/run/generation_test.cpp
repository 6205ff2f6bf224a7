// Tests how the next token is chosen, and when a continued text ends.
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "io/text/load.h"
#include "run/generation/continued_text.h"
#include "run/generation/sampling.h"
#include "test/catch.h"

namespace trainctl::test::generation_test {
namespace {

constexpr std::array<float, 6> logits{0.5f, 2.0f, -1.0f, 1.25f, 2.0f, 0.0f};

// How often each token is chosen in 40,000 texts.
std::array<int, 6> counts(const SamplingOptions& options) {
  std::array<int, 6> found{};
  for (int text = 0; text < 40'000; ++text) ++found[static_cast<std::size_t>(choose_token(logits, options, text, 7))];
  return found;
}

// Checks frequencies against probabilities: each within 4.5 standard deviations.
void check_frequencies(const std::array<int, 6>& found, const std::array<double, 6>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (std::size_t i = 0; i < 6; ++i) {
    const double p = weights[i] / sum, deviation = std::sqrt(40'000 * p * (1 - p));
    CAPTURE(i, p);
    CHECK(std::abs(found[i] - 40'000 * p) <= 4.5 * deviation);
  }
}

// The exponentials of the logits, divided by a temperature, of the tokens of a set.
std::array<double, 6> softmax_of(const std::set<std::size_t>& tokens, double temperature = 1) {
  std::array<double, 6> weights{};
  for (const std::size_t i : tokens) weights[i] = std::exp(static_cast<double>(logits[i]) / temperature);
  return weights;
}

std::vector<TokenId> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

TEST_CASE("tokens are drawn with the probabilities of the softmax, at any temperature") {
  const std::set<std::size_t> all{0, 1, 2, 3, 4, 5};
  check_frequencies(counts({}), softmax_of(all));
  check_frequencies(counts({.temperature = 0.5}), softmax_of(all, 0.5));
  check_frequencies(counts({.temperature = 3, .seed = 8}), softmax_of(all, 3));
  for (const int count : counts({.temperature = 0})) CHECK((count == 0 || count == 40'000));
  CHECK(choose_token(logits, {.temperature = 0}, 0, 0) == 1);  // the smaller of two equal ones
}

TEST_CASE("top_k keeps the likeliest tokens, and top_p the fewest that have the probability together") {
  check_frequencies(counts({.top_k = 3}), softmax_of({1, 3, 4}));
  check_frequencies(counts({.temperature = 2, .top_k = 1}), softmax_of({1}));
  // The probabilities are 0.347 (tokens 1 and 4), 0.164, 0.077, 0.047 and 0.017.
  check_frequencies(counts({.top_p = 0.3}), softmax_of({1}));
  check_frequencies(counts({.top_p = 0.68}), softmax_of({1, 4}));
  check_frequencies(counts({.top_p = 0.9}), softmax_of({1, 3, 4, 0}));
  check_frequencies(counts({.top_k = 3, .top_p = 0.8}), softmax_of({1, 4}));  // 0.404 each of the three
}

TEST_CASE("a choice follows from the seed, the text and the position, and never falls on NaN") {
  std::set<TokenId> by_seed, by_text, by_position;
  for (int i = 0; i < 40; ++i) {
    by_seed.insert(choose_token(logits, {.seed = static_cast<std::uint64_t>(i)}, 3, 5));
    by_text.insert(choose_token(logits, {}, i, 5));
    by_position.insert(choose_token(logits, {}, 3, i));
    CHECK(choose_token(logits, {}, 3, i) == choose_token(logits, {}, 3, i));
  }
  CHECK((by_seed.size() > 2 && by_text.size() > 2 && by_position.size() > 2));
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  CHECK(choose_token(std::array{nan, -infinity, 3.0f, nan}, {}, 0, 0) == 2);
  CHECK(choose_token(std::array{nan, infinity, 3.0f}, {}, 0, 0) == 1);
  CHECK_THROWS(choose_token(std::array{nan, nan}, {}, 0, 0));
}

TEST_CASE("a text ends at its length, at a stop text over several tokens, or at the token that ends documents") {
  const auto bytes = load_tokenizer("bytes");
  const EndOptions options{.max_tokens = 12, .stop = {"END", "xyz"}, .end_token = 256};
  const auto continued = [&](std::vector<TokenId> tokens) {
    ContinuedText text(bytes_of("prompt"), *bytes, options);
    for (const TokenId token : tokens) {
      if (!text.ended()) text.add(token);
    }
    return text;
  };
  ContinuedText open = continued(bytes_of("abcEN"));
  CHECK(!open.ended());
  CHECK(open.settled() == "abc");  // EN may become END
  open.add('G');
  CHECK(open.settled() == "abcENG");

  const ContinuedText stopped = continued(bytes_of("abc EEND and more"));
  CHECK(stopped.ended() == EndReason::stop);
  CHECK(stopped.text() == "abc E");
  CHECK(stopped.settled() == "abc E");
  CHECK(stopped.new_tokens() == 8);

  std::vector<TokenId> ending = bytes_of("abE");
  ending.push_back(256);
  const ContinuedText ended = continued(ending);
  CHECK(ended.ended() == EndReason::end_token);
  CHECK(ended.text() == "abE");
  CHECK(ended.settled() == "abE");

  // The twelfth byte begins a character of two bytes.
  const ContinuedText full = continued({'1', '2', '3', '4', '5', '6', '7', '8', '9', '0', '1', 0xc3, 0xa4});
  CHECK(full.ended() == EndReason::length);
  CHECK(full.text() == "12345678901\xc3");
  CHECK(ContinuedText(bytes_of("a"), *bytes, {.max_tokens = 0, .stop = {}, .end_token = {}}).ended() ==
        EndReason::length);
}

TEST_CASE("a character of several tokens appears when it is complete") {
  const auto bytes = load_tokenizer("bytes");
  const EndOptions options{.max_tokens = 12, .stop = {}, .end_token = {}};
  ContinuedText text(bytes_of("p"), *bytes, options);
  text.add(0xe2);
  text.add(0x82);
  CHECK(text.text().empty());
  text.add(0xac);
  CHECK(text.text() == "\xe2\x82\xac");
}

}  // namespace trainctl::test::generation_test
