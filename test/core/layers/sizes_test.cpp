// Tests that huge sizes, and networks with too many layers, cause errors that name the layer, in bounded time.
#include "core/layers/window.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::sizes_test {
namespace {

constexpr const char* huge[] = {"65537", "16777217", "2147483647", "4611686018427387904", "9223372036854775807"};

std::string network(const std::string& layers) { return "layers:\n" + layers + "  - flatten\n  - dense: 2\n"; }

}  // namespace

TEST_CASE("sizes that overflow cause errors that name the layer") {
  for (const char* size : huge) {
    const auto text = [&](std::string pattern) { return pattern.replace(pattern.find("HUGE"), 4, size); };
    for (const char* pattern :
         {"  - conv2d: {filters: 2, kernel_size: HUGE}\n",
          "  - conv2d: {filters: 2, kernel_size: 1, dilation_rate: HUGE}\n",
          "  - conv2d: {filters: 2, kernel_size: 3, dilation_rate: HUGE}\n",
          "  - conv2d: {filters: 2, kernel_size: 1, strides: HUGE}\n",
          "  - conv2d: {filters: 2, kernel_size: 3, padding: HUGE}\n",
          "  - conv2d: {filters: 2, kernel_size: 3, padding: same, strides: HUGE}\n",
          "  - conv2d: {filters: HUGE, kernel_size: 1}\n", "  - conv2d: {filters: 2, kernel_size: 1, groups: HUGE}\n",
          "  - max_pooling2d: {pool_size: HUGE, padding: same}\n",
          "  - average_pooling2d: {pool_size: 1, padding: HUGE}\n",
          "  - average_pooling2d: {pool_size: 2, strides: HUGE}\n", "  - flatten\n  - dense: HUGE\n"}) {
      CAPTURE(pattern, size);
      const std::string found = errors(network(text(pattern)), {8, 8, 4});
      CHECK((found.empty() || found.starts_with("m.yaml:")));
    }
  }
  CHECK(errors(network("  - conv2d: {name: c, filters: 2, kernel_size: 1, strides: 16777217}\n"), {8, 8, 4}) ==
        "m.yaml:2:5: conv2d 'c': stride 16777217 is more than 16777216 pixels (from the input)");
  CHECK(errors(network("  - conv2d: {name: c, filters: 2, kernel_size: 1, padding: 4611686018427387904}\n"),
               {8, 8, 4}) == "m.yaml:2:5: conv2d 'c': its tensors are larger than any memory (from the input)");
  CHECK(errors(network("  - dense: {name: d, units: 2147483647}\n  - dense: {name: e, units: 2147483647}\n"), {4}) ==
        "m.yaml:3:5: dense 'e': its tensors are larger than any memory (from 'd' at 2:5)");
  CHECK(errors(network("  - flatten\n"), {std::int64_t{1} << 40, std::int64_t{1} << 40, 3}) ==
        "m.yaml:2:5: a batch of 1 samples of 1099511627776x1099511627776x3 is larger than any memory");
}

TEST_CASE("windows of huge numbers are resolved or refused without overflow") {
  constexpr std::int64_t numbers[] = {
      1, 2, 3, 255, 65536, 1 << 24, (1 << 24) + 1, std::int64_t{1} << 31, std::int64_t{1} << 62, 9223372036854775807};
  for (std::int64_t size : numbers) {
    for (std::int64_t stride : numbers) {
      for (std::int64_t dilation : numbers) {
        for (std::int64_t input : numbers) {
          for (const Padding& padding : {Padding(PaddingMode::same), Padding(Size2d{dilation, stride})}) {
            Window window{{size, 1}, {stride, 1}, {dilation, 1}, {}, {}};
            try {
              if (resolve_padding(window, padding, {input, 1}, "kernel")) continue;
            } catch (const OverflowError&) {
              continue;
            }
            // An accepted window has an output without overflow: at least one row, and at most the padded input.
            const std::int64_t rows = window.output(0, input);
            CHECK(rows >= 1);
            CHECK(rows <= input + window.padding_before[0] + window.padding_after[0]);
          }
        }
      }
    }
  }
}

TEST_CASE("a network of too many layers is refused immediately") {
  CHECK(errors("layers:\n  - repeat: {times: 10000, layers: [{repeat: {times: 10000, layers: [{dense: 4}]}}]}", {4}) ==
        "m.yaml:2:70: dense 'repeat/0/repeat/4998/dense': the network has more than 5000 layers (from "
        "'repeat/0/repeat/4997/dense' at 2:70)");
  CHECK(errors("layers:\n  - repeat: {times: 4500, layers: [{activation: relu}]}\n  - dense: 4", {4}).empty());
}

}  // namespace trainctl::testing::sizes_test
