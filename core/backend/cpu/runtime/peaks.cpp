// Measures the peaks of the processor: with matrix multiplications that fit into the caches, and with a triad (a = b +
// s * c) that does not.
#include "core/backend/cpu/runtime/peaks.h"

#include <chrono>
#include <vector>

#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/onednn/widening.h"

namespace trainctl {
namespace cpu {
namespace {

double matmul_gflops(const OneDnn& dnnl, DType dtype) {
  constexpr std::int64_t size = 1024;
  const auto matrix = row_major({size, size}, dtype);
  const onednn::memory::desc any({size, size}, dnnl_type(dtype), onednn::memory::format_tag::any);
  const auto desc = onednn::matmul(dnnl.engine(), matrix, any, {}, matrix, attributes());
  const std::vector<Operand> operands{{DNNL_ARG_SRC, matrix, {}},
                                      {DNNL_ARG_WEIGHTS, desc.weights_desc(), {}},
                                      {DNNL_ARG_DST, matrix, {}},
                                      {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), {}}};
  return 2e-9 * size * size * size / measure(dnnl, dnnl::matmul(desc), operands);
}

double triad_gb_per_s() {
  constexpr std::int64_t count = std::int64_t{16} << 20;
  const std::int64_t bytes = count * size_of(DType::float32);
  std::vector<float> a(static_cast<std::size_t>(count)), b(a.size(), 1.25f), c(a.size(), 0.75f);
  double best = 1e30;
  for (int repetition = 0; repetition < 4; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    parallel_ranges(count, element_grain,
                    [a = a.data(), b = b.data(), c = c.data()](std::int64_t begin, std::int64_t end) {
                      simd([=]() TRAINCTL_INLINE {
#pragma omp simd
                        for (std::int64_t i = begin; i < end; ++i) a[i] = b[i] + 3.0f * c[i];
                      });
                    });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 3e-9 * static_cast<double>(bytes) / best;
}

}  // namespace
}  // namespace cpu

Peaks measure_cpu_peaks() {
  const cpu::OneDnn dnnl;
  const double float32 = cpu::matmul_gflops(dnnl, DType::float32);
  const double bfloat16 = cpu::has_bfloat16() ? cpu::matmul_gflops(dnnl, DType::bfloat16) : float32;
  return {float32, bfloat16, cpu::triad_gb_per_s()};
}

}  // namespace trainctl
