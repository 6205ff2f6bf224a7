// Sums over the rows of a matrix [rows, channels] that keep their accumulators in registers.
//
// Few channels would leave the vector registers empty, so that several rows are taken as one of `fold` times as many
// columns and their sums joined at the end. Rows are summed in chunks; what becomes of the chunks' results is the
// caller's.
#pragma once

#include <cstdint>

#include "core/backend/cpu/parallel.h"
#include "core/backend/cpu/simd.h"

namespace trainctl::cpu {

inline constexpr int column_tile = 64;

struct ChannelShape {
  std::int64_t rows, channels;
  std::int64_t fold;        // rows that are taken as one
  std::int64_t chunk_rows;  // of folded rows
  std::int64_t chunks;

  ChannelShape(std::int64_t row_count, std::int64_t channel_count) : rows(row_count), channels(channel_count), fold(1) {
    while (2 * fold * channels <= column_tile && rows % (2 * fold) == 0) fold *= 2;
    chunk_rows = std::max<std::int64_t>(16, element_grain / columns());
    chunks = std::max<std::int64_t>(1, (folded_rows() + chunk_rows - 1) / chunk_rows);
  }
  std::int64_t columns() const { return channels * fold; }
  std::int64_t folded_rows() const { return rows / fold; }
  std::int64_t rows_of(std::int64_t chunk) const { return std::min(chunk_rows, folded_rows() - chunk * chunk_rows); }
  // Floats that `quantities` results of every chunk and column take.
  std::int64_t partials(int quantities) const { return chunks * columns() * quantities; }
};

// One tile of a chunk: results[q][c] = sum over rows of what term(offset of the element, column, values) puts in
// values[q].
template <int quantities, int width, class Term>
TRAINCTL_INLINE inline void tile_sums(std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t column,
                                      const Term& term, float (*results)[column_tile]) {
  float sums[quantities][width] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t offset = (first + row) * columns + column;
#pragma omp simd
    for (int c = 0; c < width; ++c) {
      float values[quantities];
      term(offset + c, column + c, values);
      for (int q = 0; q < quantities; ++q) sums[q][c] += values[q];
    }
  }
  for (int q = 0; q < quantities; ++q) {
    for (int c = 0; c < width; ++c) results[q][c] = sums[q][c];
  }
}

// Calls done(chunk, column, width, results) for every tile of columns of every chunk; make_term(chunk) gives the term.
// Chunks run in parallel. Both lambdas must be inlinable (TRAINCTL_INLINE).
template <int quantities, class MakeTerm, class Done>
void channel_sums(const ChannelShape& shape, const MakeTerm& make_term, const Done& done) {
  parallel_ranges(shape.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    simd([&]() TRAINCTL_INLINE {
      const std::int64_t columns = shape.columns();
      float results[quantities][column_tile] = {};
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t first = chunk * shape.chunk_rows, rows = shape.rows_of(chunk);
        const auto term = make_term(chunk);
        for (std::int64_t column = 0; column < columns;) {
          const std::int64_t left = columns - column;
          std::int64_t width = 1;
          if (left >= 64) {
            tile_sums<quantities, 64>(first, rows, columns, column, term, results);
            width = 64;
          } else if (left >= 16) {
            tile_sums<quantities, 16>(first, rows, columns, column, term, results);
            width = 16;
          } else if (left >= 4) {
            tile_sums<quantities, 4>(first, rows, columns, column, term, results);
            width = 4;
          } else {
            tile_sums<quantities, 1>(first, rows, columns, column, term, results);
          }
          done(chunk, column, width, results);
          column += width;
        }
      }
    });
  });
}

// Joins the chunks' sums, partials[(chunk * columns + column) * quantities + q], in float64: totals[q * channels + c].
template <int quantities>
void join_channel_sums(const ChannelShape& shape, const float* partials, double* totals) {
  for (std::int64_t i = 0; i < quantities * shape.channels; ++i) totals[i] = 0;
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    for (std::int64_t column = 0; column < shape.columns(); ++column) {
      const float* partial = partials + (chunk * shape.columns() + column) * quantities;
      for (int q = 0; q < quantities; ++q) totals[q * shape.channels + column % shape.channels] += partial[q];
    }
  }
}

}  // namespace trainctl::cpu
