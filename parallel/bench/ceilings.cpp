// Measures the peak rates of a rank's device.
#include "parallel/bench/ceilings.h"

#include <algorithm>

#include "core/base/clock.h"

namespace trainctl {
namespace {

// Returns the rate of copies of `bytes` bytes from one buffer to another: the best of three rounds.
double measure_copy(Backend& backend, std::int64_t bytes, int copies) {
  const Memory from = backend.allocate(bytes), to = backend.allocate(bytes);
  const auto stream = backend.compute_stream();
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const double start = seconds_now();
    for (int i = 0; i < copies; ++i) backend.copy(to.get(), from.get(), bytes, *stream);
    stream->synchronize();
    best = std::max(best, 2e-9 * copies * static_cast<double>(bytes) / (seconds_now() - start));
  }
  return best;
}

// Measures copies that fit in caches. On the CPU a copy runs on one thread, but ops run on all threads of a rank, each
// with its own caches, so the values are multiplied by the number of threads.
std::vector<CopyRate> measure_cached(Backend& backend, int threads) {
  std::vector<CopyRate> rates;
  for (std::int64_t bytes = 8 << 10; bytes <= 32 << 20; bytes *= 4) {
    const int copies = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{64} << 20) / bytes, 8, 1024));
    rates.push_back({2 * bytes * threads, threads * measure_copy(backend, bytes, copies)});
  }
  return rates;
}

}  // namespace

double Ceilings::gb_per_s(std::int64_t bytes) const {
  double best = std::max(copy_gb_per_s, peaks.triad_gb_per_s);
  for (std::size_t i = cached.size(); i-- > 0;) {
    best = std::max(best, cached[i].gb_per_s);
    if (cached[i].bytes <= bytes) {
      // `bytes` exceeds the largest small copy, so that the data does not fit in the caches.
      return i + 1 == cached.size() ? std::max(copy_gb_per_s, peaks.triad_gb_per_s) : best;
    }
  }
  return best;
}

double Ceilings::cached_gb_per_s() const {
  double best = 0;
  for (const CopyRate& rate : cached) best = std::max(best, rate.gb_per_s);
  return best;
}

double Ceilings::gflops(DType dtype) const {
  return dtype == DType::bfloat16 || dtype == DType::float16 ? peaks.bfloat16_gflops : peaks.float32_gflops;
}

Ceilings measure_ceilings(Backend& backend, int threads) {
  constexpr std::int64_t large = std::int64_t{256} << 20;
  return {backend.peaks(), measure_copy(backend, large, 8), measure_cached(backend, backend.on_host() ? threads : 1)};
}

}  // namespace trainctl
