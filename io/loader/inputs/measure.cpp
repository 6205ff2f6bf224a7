// Measures statistics from sums over blocks of samples. The blocks are the same for any number of threads and are added
// in their order.
#include "io/loader/inputs/measure.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <thread>

#include "io/loader/images/transform_options.h"

namespace trainctl {
namespace {

constexpr std::int64_t block_size = 256;

// The sums of x - shift and of its square by channel. The shift, a typical value, avoids cancellation if deviations are
// small.
struct Moments {
  std::vector<double> first, second;
  std::int64_t samples = 0;
};

void add(const std::vector<float>& values, const std::vector<double>& shift, Moments& sums) {
  const std::size_t channels = shift.size();
  for (std::size_t i = 0; i < values.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      const double x = double{values[i + c]} - shift[c];
      sums.first[c] += x;
      sums.second[c] += x * x;
    }
  }
  ++sums.samples;
}

}  // namespace

Statistics measure_statistics(const Dataset& dataset, const Subset& subset, const TransformPlan& so_far, int threads,
                              OnError on_error) {
  const Transform transform(dataset.info().sample, dataset.info().dtype, so_far.fixed, {}, Affine{});
  const std::int64_t count = transform.output_shape().count();
  const auto channels = static_cast<std::size_t>(as_image(nullptr, DType::uint8, transform.output_shape()).channels);
  // Reads a sample; returns false if it is skipped.
  const auto read = [&](std::int64_t position, Sample& sample, Transform::Scratch& scratch,
                        std::vector<float>& values) {
    values.resize(static_cast<std::size_t>(count));
    sample.resize = transform.first_resize();
    try {
      read_finite(dataset, subset[position], on_error == OnError::skip, sample);
      transform.finish(transform.prepare(sample, dataset, subset[position], scratch), false, {}, 0,
                       reinterpret_cast<std::byte*>(values.data()));
    } catch (const Error& error) {
      if (on_error == OnError::stop || error.kind() != ErrorKind::data) throw;
      return false;
    }
    return true;
  };

  Sample probe;
  Transform::Scratch probe_scratch;
  std::vector<float> values;
  std::int64_t first_good = 0;
  while (first_good < subset.size() && !read(first_good, probe, probe_scratch, values)) ++first_good;
  if (first_good == subset.size()) throw Error(ErrorKind::data, "`normalize: measured`: no sample can be read");
  const std::vector<double> shift(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(channels));

  const std::int64_t blocks = (subset.size() + block_size - 1) / block_size;
  std::vector<Moments> sums(static_cast<std::size_t>(blocks),
                            {std::vector<double>(channels), std::vector<double>(channels), 0});
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(blocks));
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    Sample sample;
    Transform::Scratch scratch;
    std::vector<float> row;
    for (std::int64_t block; !failed && (block = next++) < blocks;) {
      const auto which = static_cast<std::size_t>(block);
      try {
        const std::int64_t end = std::min(subset.size(), (block + 1) * block_size);
        for (std::int64_t position = block * block_size; position < end; ++position) {
          if (read(position, sample, scratch, row)) add(row, shift, sums[which]);
        }
      } catch (...) {
        errors[which] = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }

  Statistics result;
  std::int64_t samples = 0;
  for (const Moments& block : sums) samples += block.samples;
  const double n = static_cast<double>(samples) * static_cast<double>(count) / static_cast<double>(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    double first = 0, second = 0;
    for (const Moments& block : sums) first += block.first[c], second += block.second[c];
    const double mean = first / n, variance = second / n - mean * mean;
    // Convert the result to the statistics of the values after the transforms so far.
    const std::size_t which = so_far.affine.uniform() ? 0 : c;
    const double scale = so_far.affine.scale[which];
    const double deviation = std::sqrt(std::max(0.0, variance)) * std::abs(scale);
    result.mean.push_back((mean + shift[c]) * scale + so_far.affine.offset[which]);
    result.stddev.push_back(deviation > 0 ? deviation : 1);
  }
  return result;
}

}  // namespace trainctl
