// Tests the exact error texts of networks.
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::errors_test {
namespace {

struct Case {
  std::string yaml;
  Shape sample;
  std::string message;
};

}  // namespace

TEST_CASE("impossible networks are reported with the locations of the layer and its producer") {
  const Case cases[] = {
      {R"(layers:
  - max_pooling2d: {name: pool2}
  - conv2d: {name: c3, filters: 12, kernel_size: 3, groups: 3})",
       {8, 8, 64},
       "m.yaml:3:5: conv2d 'c3': groups 3 does not divide 64 input channels (from 'pool2' at 2:5)"},
      {"layers:\n  - conv2d: {filters: 9, kernel_size: 1, groups: 2}",
       {8, 8, 4},
       "m.yaml:2:5: conv2d 'conv2d': groups 2 does not divide 9 filters (from the input)"},
      {"layers:\n  - max_pooling2d: {name: pool2}\n  - conv2d: {filters: 4, kernel_size: 5}",
       {8, 8, 3},
       "m.yaml:3:5: conv2d 'conv2d': kernel 5 exceeds input 4 (from 'pool2' at 2:5)"},
      {"layers:\n  - conv2d: {filters: 4, kernel_size: [1, 3], dilation_rate: 4}",
       {8, 8, 3},
       "m.yaml:2:5: conv2d 'conv2d': kernel 9 (3 dilated by 4) exceeds input 8 (from the input)"},
      {"layers:\n  - conv2d: {filters: 4, kernel_size: 7, padding: 1}",
       {4, 8, 3},
       "m.yaml:2:5: conv2d 'conv2d': kernel 7 exceeds input 4 with padding 1 (from the input)"},
      {"layers:\n  - average_pooling2d: {pool_size: 9}",
       {8, 8, 3},
       "m.yaml:2:5: average_pooling2d 'average_pooling2d': window 9 exceeds input 8 (from the input)"},
      {"layers:\n  - max_pooling2d: {pool_size: [16, 17]}",
       {32, 32, 3},
       "m.yaml:2:5: max_pooling2d 'max_pooling2d': a window of 16x17 has more than 256 elements (from the input)"},
      {"layers:\n  - max_pooling2d: {pool_size: 2, padding: 2}",
       {32, 32, 3},
       "m.yaml:2:5: max_pooling2d 'max_pooling2d': padding 2 leaves windows of 2 pixels empty (from the input)"},
      {"layers:\n  - conv2d: {filters: 4, kernel_size: 1}",
       {64},
       "m.yaml:2:5: conv2d 'conv2d': input 64 is not an image (height, width, channels) (from the input)"},
      {"layers:\n  - global_average_pooling2d",
       {64},
       "m.yaml:2:5: global_average_pooling2d 'global_average_pooling2d': input 64 is not an image (height, width, "
       "channels) "
       "(from the input)"},
      {"layers:\n  - embedding: {input_dim: 5, output_dim: 2}\n  - dense: 4",
       {8},
       "m.yaml:2:5: embedding 'embedding': input 8 holds values, not tokens: store them as whole numbers (from the "
       "input)"},
      {R"(layers:
  - dense: {name: a, units: 4}
  - dense: {name: b, units: 5}
  - add: {from: [a, b]})",
       {8},
       "m.yaml:4:5: add 'add': 4 of 'a' and 5 of 'b' cannot be added (from 'b' at 3:5)"},
      {R"(layers:
  - conv2d: {name: a, filters: 4, kernel_size: 1}
  - conv2d: {name: b, filters: 4, kernel_size: 3}
  - concatenate: {from: [a, b]})",
       {8, 8, 1},
       "m.yaml:4:5: concatenate 'concatenate': 8x8x4 of 'a' and 6x6x4 of 'b' differ in more than the last dimension "
       "(from 'b' at 3:5)"},
      {"layers:\n  - dense: {name: a, units: 4}\n  - add: {from: [a]}",
       {8},
       "m.yaml:3:17: from names 1 layer, but at least two are needed"},
      {R"(layers:
  - dense: {name: first, units: 4}
  - dense: {name: second, units: 4}
  - add: {from: [frist, second]})",
       {8},
       "m.yaml:4:18: add 'add': there is no layer 'frist' before it; did you mean 'first'?"},
      {R"(layers:
  - dense: {name: a, units: 4, from: b}
  - dense: {name: b, units: 4})",
       {8},
       "m.yaml:2:38: dense 'a': there is no layer 'b' before it"},
      {"layers:\n  - dense: {name: a, units: 4}\n  - dense: {name: a, units: 5}",
       {8},
       "m.yaml:3:5: dense 'a': a name that is used again means the same layer with the same weights and options "
       "(units: 4 before, 5 now): give this layer another name, or equal options (first use at 2:5)"},
      {"layers:\n  - dense: {name: a, units: 4}\n  - dropout: {name: a, rate: 0.1}\n  - dense: 3",
       {8},
       "m.yaml:3:5: dropout 'a': a name that is used again means the same layer with the same weights and options "
       "(dense before, dropout now): give this layer another name, or equal options (first use at 2:5)"},
      {"layers:\n  - dense: {name: a, units: 4}\n  - dense: {name: a, units: 4}\n  - dense: 3",
       {8},
       "m.yaml:3:5: dense 'a': a name that is used again means the same layer with the same weights, but with this "
       "input its kernel is 4x4, and with that of its first use 8x4: give this layer another name (first use at 2:5)"},
      {R"(layers:
  - dense: {name: a, units: 8}
  - dense: {name: a, units: 8}
  - add: {from: [a@1, a@3]})",
       {8},
       "m.yaml:4:23: add 'add': there is no layer 'a@3' before it; did you mean 'a@2'?"},
      {R"(layers:
  - dense: {name: a, units: 8}
  - dense: {name: a, from: input, units: 8}
  - add: {from: [a, a@2]}
  - dense: 3)",
       {8},
       "m.yaml:2:5: dense 'a': no layer reads its output"},
      {"layers:\n  - dense: {name: a@2, units: 4}",
       {8},
       "m.yaml:2:5: dense 'a@2': a name consists of letters, digits, '_', '-' and '.'"},
      {"layers:\n  - dense: {name: input, units: 4}", {8}, "m.yaml:2:5: dense 'input': this name is taken"},
      {"layers:\n  - dense: {name: \"a\\u202e\", units: 4}",  // a mark that changes the direction of a line
       {8},
       "m.yaml:2:5: dense 'a\xe2\x80\xae': a name consists of letters, digits, '_', '-' and '.'"},
      {"layers:\n  - dense: {name: a/b, units: 4}",
       {8},
       "m.yaml:2:5: dense 'a/b': a name consists of letters, digits, '_', '-' and '.'"},
      {R"(layers:
  - residual:
      name: block
      layers:
        - conv2d: {name: c, filters: 8, kernel_size: 3, strides: 2, padding: same})",
       {8, 8, 8},
       "m.yaml:2:5: residual 'block': the layers produce 4x4x8 and the shortcut produces 8x8x8, which cannot be added "
       "(from 'block/c' at 5:11)"},
      {R"(layers:
  - dense: {name: a, units: 4}
  - dense: {name: lost, units: 4}
  - dense: {name: b, units: 4, from: a})",
       {8},
       "m.yaml:3:5: dense 'lost': no layer reads its output"},
      {R"(layers:
  - dense: {name: a, units: 8}
  - residual: {name: lost, layers: [{dense: 8}]}
  - dense: {name: b, units: 4, from: a})",
       {8},
       "m.yaml:3:5: residual 'lost': no layer reads its output"},
      {"layers:\n  - flatten\n  - activation: relu",
       {8, 8, 3},
       "m.yaml:2:5: the network has no parameters: there is nothing to train"},
      {"layers:\n  - conv2e: {filters: 4}", {8, 8, 3}, "m.yaml:2:5: unknown layer 'conv2e'; did you mean 'conv2d'?"},
      {"layers:\n  - conv2d: {filters: 4, kernel_size: 3, padding: sane}",
       {8, 8, 3},
       "m.yaml:2:51: padding must be valid, same or a whole number, not 'sane'; did you mean 'same'?"},
      {"layers:\n  - dense: {units: 4, activation: rleu}",
       {8},
       "m.yaml:2:35: unknown activation 'rleu'; did you mean 'relu'?"},
      {"layers:\n  - residual: {layers: []}", {8}, "m.yaml:2:24: layers is empty"},
      {"layers:\n  - dropout: 1.0\n  - dense: 3", {8}, "m.yaml:2:14: rate must be at least 0 and less than 1, not 1.0"},
  };
  for (const Case& test : cases) {
    CAPTURE(test.yaml);
    CHECK(errors(test.yaml, test.sample) == test.message);
  }
}

TEST_CASE("all errors are reported together, and layers after an unknown shape are not checked") {
  CHECK(errors(R"(layers:
  - conv2d: {name: c1, filters: 4, kernel_size: 3, groups: 2}
  - conv2d: {name: c2, filters: 4, kernel_size: 9}
  - conv2d: {name: c3, filters: 4, kernel_size: 9}
  - add: {from: [c1, c0]}
  - dense: {name: c1, units: 3})",
               {8, 8, 3}) ==
        "m.yaml:2:5: conv2d 'c1': groups 2 does not divide 3 input channels (from the input)\n"
        "m.yaml:3:5: conv2d 'c2': kernel 9 exceeds input 6 (from 'c1' at 2:5)\n"
        "m.yaml:5:22: add 'add': there is no layer 'c0' before it; did you mean 'c1'?\n"
        "m.yaml:6:5: dense 'c1': a name that is used again means the same layer with the same weights and options "
        "(conv2d before, dense now): give this layer another name, or equal options (first use at 2:5)");
  // An error in a repetition is reported for the first time alone.
  CHECK(errors(R"(layers:
  - repeat:
      times: 5
      layers:
        - conv2d: {filters: 4, kernel_size: 4}
        - max_pooling2d)",
               {32, 32, 3}) ==
        "m.yaml:5:11: conv2d 'repeat/3/conv2d': kernel 4 exceeds input 1 (from 'repeat/2/max_pooling2d' at 6:11)");
}

}  // namespace trainctl::testing::errors_test
