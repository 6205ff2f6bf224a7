// Measuring a rank's ceilings.
#include "cmd/ceilings.h"

#include <algorithm>

#include "core/base/clock.h"

namespace trainctl {
namespace {

double measure_copy(Backend& backend) {
  constexpr std::int64_t bytes = std::int64_t{256} << 20;
  constexpr int copies = 8;
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

}  // namespace

double Ceilings::gb_per_s() const { return std::max(copy_gb_per_s, peaks.triad_gb_per_s); }

double Ceilings::gflops(DType dtype) const {
  return dtype == DType::bfloat16 || dtype == DType::float16 ? peaks.bfloat16_gflops : peaks.float32_gflops;
}

Ceilings measure_ceilings(Backend& backend) { return {backend.peaks(), measure_copy(backend)}; }

}  // namespace trainctl
