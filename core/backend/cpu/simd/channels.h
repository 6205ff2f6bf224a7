// Sums over the rows of a matrix [rows, channels] that keep their accumulators in registers.
//
// Few channels would leave vector registers partly empty. Therefore `fold` rows are treated as one row of fold *
// channels columns, and the sums of columns of the same channel are added at the end. Rows are summed in chunks; the
// caller adds up the chunks' results.
#pragma once

#include <cstdint>

#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"
#include "core/backend/cpu/simd/tiles.h"

namespace trainctl::cpu {

struct ChannelShape {
  std::int64_t rows, channels;
  std::int64_t fold;        // number of rows that are treated as one; 1 if rows may not be folded
  std::int64_t chunk_rows;  // number of folded rows in a chunk
  std::int64_t chunks;

  ChannelShape(std::int64_t row_count, std::int64_t channel_count, bool may_fold = true)
      : rows(row_count), channels(channel_count), fold(1) {
    while (may_fold && 2 * fold * channels <= widest_tile && rows % (2 * fold) == 0) fold *= 2;
    chunk_rows = std::max<std::int64_t>(16, element_grain / columns());
    chunks = std::max<std::int64_t>(1, (folded_rows() + chunk_rows - 1) / chunk_rows);
  }
  std::int64_t columns() const { return channels * fold; }
  std::int64_t folded_rows() const { return rows / fold; }
  std::int64_t rows_of(std::int64_t chunk) const { return std::min(chunk_rows, folded_rows() - chunk * chunk_rows); }
  // The number of float values that hold `quantities` results of every chunk and column.
  std::int64_t partials(int quantities) const { return chunks * columns() * quantities; }
};

// The two quantities of an element that are summed.
struct Pair {
  float first, second;
};

// Sums the Pairs term(offset of the element, column) over the rows of a chunk for a tile of `width` columns.
template <int width, class Term>
TRAINCTL_INLINE inline void tile_sums(std::int64_t first_row, std::int64_t rows, std::int64_t columns,
                                      std::int64_t column, const Term& term, float* first, float* second) {
  float first_sums[width] = {}, second_sums[width] = {};
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    const std::int64_t offset = row * columns + column;
#pragma omp simd
    for (int c = 0; c < width; ++c) {
      const Pair pair = term(offset + c, column + c);
      first_sums[c] += pair.first;
      second_sums[c] += pair.second;
    }
  }
  for (int c = 0; c < width; ++c) {
    first[c] = first_sums[c];
    second[c] = second_sums[c];
  }
}

// Calls done(chunk, column, width, first sums, second sums) for every tile of columns of every chunk. make_term(chunk)
// returns the term of tile_sums(). Chunks run in parallel. The lambdas must be inlinable (TRAINCTL_INLINE).
template <class MakeTerm, class Done>
void channel_sums(const ChannelShape& shape, const MakeTerm& make_term, const Done& done) {
  parallel_ranges(shape.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    simd([&]() TRAINCTL_INLINE {
      const std::int64_t columns = shape.columns();
      float first[widest_tile] = {}, second[widest_tile] = {};
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t first_row = chunk * shape.chunk_rows, rows = shape.rows_of(chunk);
        const auto term = make_term(chunk);
        each_tile(columns, [&](std::int64_t column, auto width) TRAINCTL_INLINE {
          tile_sums<width()>(first_row, rows, columns, column, term, first, second);
          done(chunk, column, width(), first, second);
        });
      }
    });
  });
}

// Adds up the chunks' sums, partials[(chunk * columns + column) * quantities + q], in float64, and writes them to
// totals[q * channels + c].
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
