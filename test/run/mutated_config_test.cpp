// Tests configs with random damage: each is read, or refused with errors.
#include "core/base/random.h"
#include "test/catch.h"
#include "test/run/config_support.h"

namespace trainctl::testing::mutated_config_test {
namespace {

// The text with a few bytes changed, or with lines removed or doubled.
std::string damaged(std::string text, std::uint64_t sample) {
  static const std::string bytes = ":-[]{}'\"#&*!|>%@`,?\n 0a$";
  const RandomKey key{.seed = 5};
  const std::uint32_t changes = 1 + key.block(sample)[0] % 4;
  for (std::uint32_t i = 1; i <= changes && !text.empty(); ++i) {
    const PhiloxBlock random = key.block(sample, i);
    const std::size_t at = random[0] % text.size();
    const std::size_t line = text.rfind('\n', at) + 1;
    const std::size_t length = text.find('\n', at) - line + 1;
    switch (random[1] % 5) {
      case 0:
        text[at] = bytes[random[2] % bytes.size()];
        break;
      case 1:
        text.insert(at, 1, bytes[random[2] % bytes.size()]);
        break;
      case 2:
        text.erase(at, 1 + random[2] % 12);
        break;
      case 3:
        text.erase(line, length);
        break;
      default:
        text.insert(line, text.substr(line, length));
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a damaged config is read or refused") {
  const std::string rich = replaced(
      replaced(good_config, "    - flatten\n",
               "    - residual: {layers: [{conv2d: {filters: 1, kernel_size: 3, padding: same}}], activation: relu}\n"
               "    - repeat: {times: 2, layers: [batch_normalization]}\n    - flatten\n"),
      "  classes: 10\n",
      "  classes: 10\n  validation: {split: 0.1}\n  transform:\n    - normalize: {mean: [0.5], std: [0.2]}\n    - "
      "resize: 8\n"
      "  augment:\n    - random_crop: {size: 8, padding: 1}\n");
  REQUIRE(config_errors(rich).empty());
  int refused = 0;
  constexpr int samples = 3000;
  for (int sample = 0; sample < samples; ++sample) {
    const std::string text = damaged(rich, sample);
    CAPTURE(text);
    std::string errors;
    REQUIRE_NOTHROW(errors = config_errors(text));
    if (!errors.empty()) ++refused;
  }
  CHECK(refused > samples / 2);
  CHECK(refused < samples);
}

}  // namespace trainctl::testing::mutated_config_test
