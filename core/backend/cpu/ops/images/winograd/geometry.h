// The tiles of 4x4 outputs that cover the images of a convolution.
#pragma once

#include <cstdint>

namespace trainctl::cpu::winograd {

inline constexpr int points = 6;   // of one dimension
inline constexpr int outputs = 4;  // of a tile, along each axis
inline constexpr int taps = 3;     // of the kernel, along each axis
inline constexpr int all_points = points * points;
inline constexpr int block = 16;  // channels that lie together; see products.h

// A convolution of images [images, in_rows, in_columns, in] with a kernel [3, 3, in, out], with strides 1; `top` and
// `left` are the rows and columns of padding above and on the left of an image.
struct Geometry {
  std::int64_t images, in_rows, in_columns, in;
  std::int64_t out_rows, out_columns, out;
  std::int64_t top, left;

  std::int64_t tile_rows() const { return (out_rows + outputs - 1) / outputs; }
  std::int64_t tile_columns() const { return (out_columns + outputs - 1) / outputs; }
  std::int64_t tiles() const { return images * tile_rows() * tile_columns(); }
};

// The image of a tile, and its first row and column in the output.
struct Tile {
  std::int64_t image, row, column;

  Tile(const Geometry& g, std::int64_t number)
      : image(number / (g.tile_rows() * g.tile_columns())),
        row(number / g.tile_columns() % g.tile_rows() * outputs),
        column(number % g.tile_columns() * outputs) {}

  // Goes to the next tile: along the row, then to the next row, then to the next image.
  void advance(const Geometry& g) {
    column += outputs;
    if (column < g.out_columns) return;
    column = 0;
    row += outputs;
    if (row < g.out_rows) return;
    row = 0;
    ++image;
  }
};

}  // namespace trainctl::cpu::winograd
