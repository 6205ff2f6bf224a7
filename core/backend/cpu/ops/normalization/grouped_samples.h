// The loops of group normalisation over samples. Each sample is a matrix [positions, channels]; its columns are summed
// in chunks of rows. The order of a sample's sums depends on its shape only.
#pragma once

#include <cstddef>

#include "core/backend/cpu/lower.h"
#include "core/backend/cpu/simd/channels.h"
#include "core/tensor/shape.h"

namespace trainctl::cpu {

struct GroupedSamples {
  std::int64_t count, groups;
  ChannelShape each;  // shape of a sample

  GroupedSamples(const Shape& x, std::int64_t group_count)
      : count(x[0]), groups(group_count), each(x.without_front().rows(), x.back()) {}
  std::int64_t values() const { return each.rows * each.channels; }  // number of values of a sample
  std::int64_t group_channels() const { return each.channels / groups; }
  double group_values() const { return static_cast<double>(values() / groups); }
};

// The scratch memory of a sample.
struct SampleScratch {
  double *first, *second;  // [channels] each: totals
  float* partials;         // [chunks][2][columns]
  float* constants;        // [4][columns]: factors for the pass over elements

  static std::int64_t bytes(const ChannelShape& shape) {
    return shape.channels * 2 * 8 + (shape.partials(2) + shape.columns() * 4) * 4;
  }
  TRAINCTL_INLINE SampleScratch(const ChannelShape& shape, std::byte* memory, std::int64_t sample)
      : first(reinterpret_cast<double*>(memory + sample * bytes(shape))), second(first + shape.channels) {
    partials = reinterpret_cast<float*>(second + shape.channels);
    constants = partials + shape.partials(2);
  }
};

// Calls visit(rows, first, second) for each chunk and each folded row in it, with the chunk's number of rows and the
// addresses of the two sums of channel 0.
template <class Visit>
TRAINCTL_INLINE inline void each_chunk_sums(const ChannelShape& shape, const SampleScratch& scratch,
                                            const Visit& visit) {
  const std::int64_t columns = shape.columns();
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const float* sums = scratch.partials + 2 * chunk * columns;
    for (std::int64_t column = 0; column < columns; column += shape.channels) {
      visit(static_cast<double>(shape.rows_of(chunk)), sums + column, sums + columns + column);
    }
  }
}

// Writes value(group, channel) for each column to `row`.
template <class Value>
TRAINCTL_INLINE inline void fill_columns(const GroupedSamples& shape, float* row, const Value& value) {
  const std::int64_t width = shape.group_channels(), columns = shape.each.columns();
  for (std::int64_t column = 0; column < columns; column += shape.each.channels) {
    for (std::int64_t group = 0; group < shape.groups; ++group) {
      for (std::int64_t c = group * width; c < (group + 1) * width; ++c) row[column + c] = value(group, c);
    }
  }
}

// Calls body(offset of the row in the sample) for each row of a chunk.
template <class Body>
TRAINCTL_INLINE inline void each_chunk_row(const ChannelShape& shape, std::int64_t chunk, const Body& body) {
  const std::int64_t first = chunk * shape.chunk_rows;
  for (std::int64_t row = first; row < first + shape.rows_of(chunk); ++row) body(row * shape.columns());
}

// Runs the steps begin, sum, join and apply for all samples; sum and apply run for each chunk of a sample. If there are
// enough samples for all threads, a thread runs all steps of a sample while the sample is in its cache.
template <class Steps>
void run_steps(const GroupedSamples& shape, const Steps& steps) {
  const std::int64_t chunks = shape.each.chunks;
  const auto begin = [&](std::int64_t from, std::int64_t to) {
    simd([&]() TRAINCTL_INLINE {
      for (std::int64_t sample = from; sample < to; ++sample) steps.begin(sample);
    });
  };
  const auto sum = [&](std::int64_t from, std::int64_t to) {
    simd([&]() TRAINCTL_INLINE {
      for (std::int64_t i = from; i < to; ++i) steps.sum(i / chunks, i % chunks);
    });
  };
  const auto join = [&](std::int64_t from, std::int64_t to) {
    simd([&]() TRAINCTL_INLINE {
      for (std::int64_t sample = from; sample < to; ++sample) steps.join(sample);
    });
  };
  const auto apply = [&](std::int64_t from, std::int64_t to) {
    simd([&]() TRAINCTL_INLINE {
      for (std::int64_t i = from; i < to; ++i) steps.apply(i / chunks, i % chunks);
    });
  };
  const std::int64_t threads = omp_get_max_threads(), samples = shape.count;
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / shape.values());
  if (samples % threads == 0 || samples >= 4 * threads) {
    return parallel_ranges(samples, grain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t sample = from; sample < to; ++sample) {
        begin(sample, sample + 1);
        sum(sample * chunks, (sample + 1) * chunks);
        join(sample, sample + 1);
        apply(sample * chunks, (sample + 1) * chunks);
      }
    });
  }
  parallel_ranges(samples, grain, begin);
  parallel_ranges(samples * chunks, grain, sum);
  parallel_ranges(samples, grain, join);
  parallel_ranges(samples * chunks, grain, apply);
}

}  // namespace trainctl::cpu
