// Lists convolutions for tests of kernels, and has the naive loops that the kernels are compared with.
#pragma once

#include "core/graph/ops/images/window.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test {

struct ConvolutionCase {
  const char* what;
  Shape x;
  std::int64_t out, groups;
  Window window;

  Shape y() const { return {x[0], window.output(0, x[1]), window.output(1, x[2]), out}; }
  Shape kernel() const { return {window.size[0], window.size[1], x[3] / groups, out}; }
};

// Calls visit(index of x, of the kernel, of y) for every product of the convolution.
template <class Visit>
void each_product(const ConvolutionCase& c, const Visit& visit) {
  const Window& w = c.window;
  const std::int64_t n = c.x[0], h = c.x[1], wd = c.x[2], in = c.x[3], in_group = in / c.groups,
                     out_group = c.out / c.groups;
  const std::int64_t oh = w.output(0, h), ow = w.output(1, wd);
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t y = 0; y < oh; ++y)
      for (std::int64_t x = 0; x < ow; ++x)
        for (std::int64_t i = 0; i < w.size[0]; ++i)
          for (std::int64_t j = 0; j < w.size[1]; ++j) {
            const std::int64_t row = y * w.strides[0] - w.padding_before[0] + i * w.dilation[0];
            const std::int64_t column = x * w.strides[1] - w.padding_before[1] + j * w.dilation[1];
            if (row < 0 || row >= h || column < 0 || column >= wd) continue;
            for (std::int64_t o = 0; o < c.out; ++o)
              for (std::int64_t k = 0; k < in_group; ++k) {
                visit(static_cast<std::size_t>(((b * h + row) * wd + column) * in + o / out_group * in_group + k),
                      static_cast<std::size_t>(((i * w.size[1] + j) * in_group + k) * c.out + o),
                      static_cast<std::size_t>(((b * oh + y) * ow + x) * c.out + o));
              }
          }
}

inline const ConvolutionCase convolution_cases[] = {
    {"3x3 same", {2, 8, 8, 16}, 16, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"3x3 valid, cut tiles, more outputs", {2, 9, 7, 32}, 48, 1, {{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"one channel", {3, 12, 10, 1}, 5, 1, {{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"one channel, many rows", {9, 26, 27, 1}, 32, 1, {{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"two channels, dilation and stride 2", {2, 13, 12, 2}, 32, 1, {{2, 3}, {2, 2}, {3, 2}, {1, 2}, {2, 3}}},
    {"stride 2, padding on one side (as in same)", {2, 9, 8, 3}, 16, 1, {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}}},
    {"odd channels, oblong", {2, 7, 11, 13}, 10, 1, {{5, 2}, {1, 2}, {1, 1}, {2, 0}, {1, 1}}},
    {"groups", {2, 6, 6, 12}, 8, 4, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"depthwise", {2, 6, 6, 16}, 16, 16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"dilation", {1, 11, 9, 8}, 16, 1, {{3, 3}, {1, 1}, {2, 3}, {2, 3}, {2, 3}}},
    {"odd width, stride 2, even and odd pairings", {3, 9, 13, 20}, 24, 1, {{3, 5}, {2, 2}, {1, 1}, {1, 2}, {1, 2}}},
    {"stride 3, far padding", {2, 10, 11, 6}, 40, 1, {{4, 7}, {3, 3}, {1, 1}, {3, 6}, {0, 5}}},
    {"dilation and stride 2", {2, 13, 12, 9}, 18, 1, {{2, 3}, {2, 2}, {3, 2}, {1, 2}, {2, 3}}},
    {"many rows and channels", {7, 24, 19, 72}, 80, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"kernel as large as the image", {5, 4, 3, 16}, 16, 1, {{4, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"colours, 7x7 stride 2", {1, 33, 41, 3}, 64, 1, {{7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}}},
    {"colours, wider than a tile", {1, 9, 70, 4}, 32, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"colours, more channels than a tile", {2, 10, 7, 3}, 48, 1, {{5, 6}, {1, 3}, {1, 1}, {2, 0}, {2, 4}}},
    {"1x1, many positions", {3, 20, 19, 24}, 144, 1, {{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"3x3 on images of one position", {5, 1, 1, 16}, 32, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"1x1 stride 2", {2, 8, 8, 16}, 32, 1, {{1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}},
};

}  // namespace trainctl::test
