// Measures the peaks of the processor: with matrix multiplications that fit into the caches, with multiply-adds in
// registers, and with a triad (a = b + s * c) that does not fit into the caches.
#include "core/backend/cpu/runtime/peaks.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/onednn/widening.h"
#include "core/backend/cpu/simd/product.h"

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

// Runs `steps` steps of independent multiply-adds in registers, and returns the operations of a step. `sink` receives a
// value that depends on all results, so that the compiler keeps them.
using Chains = double (*)(std::int64_t steps, float* sink);

#if defined(__x86_64__)

constexpr int chains = 12;  // more than the latency of a multiply-add times the number that begins in a cycle

[[gnu::target("avx512f")]] double chains_avx512(std::int64_t steps, float* sink) {
  const __m512 factor = _mm512_set1_ps(0.5f);
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(static_cast<float>(i));  // the compiler would merge equal chains
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  }
  for (const __m512& sum : sums) *sink += sum[0];
  return chains * 16 * 2;
}

[[gnu::target("avx512f,avx512bf16")]] double chains_of_pairs(std::int64_t steps, float* sink) {
  const auto factor = (__m512bh)_mm512_set1_epi32(0x3f003f00);  // pairs of 0.5
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(static_cast<float>(i));  // the compiler would merge equal chains
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor);
  }
  for (const __m512& sum : sums) *sink += sum[0];
  return chains * 32 * 2;
}

[[gnu::target("avx2,fma")]] double chains_avx2(std::int64_t steps, float* sink) {
  const __m256 factor = _mm256_set1_ps(0.5f);
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm256_set1_ps(static_cast<float>(i));  // the compiler would merge equal chains
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  for (const __m256& sum : sums) *sink += sum[0];
  return chains * 8 * 2;
}

#endif

// The multiply-adds of this dtype for this processor, or null.
Chains chains_of([[maybe_unused]] DType dtype) {
#if defined(__x86_64__)
  if (dtype == DType::bfloat16) return multiplies_pairs() ? chains_of_pairs : nullptr;
  if (instruction_set() == InstructionSet::avx512) return chains_avx512;
  if (instruction_set() == InstructionSet::avx2) return chains_avx2;
#endif
  return nullptr;
}

// The rate of multiply-adds in registers, without loads and stores, on all threads; 0 if there are none. A run takes at
// least 20 ms: a container with a quota of CPU time runs faster for a few milliseconds.
double register_gflops(DType dtype) {
  const Chains run = chains_of(dtype);
  if (run == nullptr) return 0;
  constexpr double least_seconds = 0.02;
  std::int64_t steps = 200'000;
  const int threads = omp_get_max_threads();
  std::vector<float> sinks(static_cast<std::size_t>(threads));
  double operations = 0;
  const auto run_all = [&] {
    parallel_ranges(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const double of_step = run(steps, &sinks[static_cast<std::size_t>(i)]);
        if (i == 0) operations = of_step * static_cast<double>(steps * threads);
      }
    });
  };
  const auto start = std::chrono::steady_clock::now();
  run_all();
  const double first = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  steps = static_cast<std::int64_t>(static_cast<double>(steps) * std::max(1.0, 2 * least_seconds / first));
  const double seconds = best_seconds(run_all);
  return 1e-9 * operations / seconds;
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
  Peaks peaks;
  peaks.float32_product_gflops = cpu::matmul_gflops(dnnl, DType::float32);
  peaks.float32_gflops = std::max(peaks.float32_product_gflops, cpu::register_gflops(DType::float32));
  // Without oneDNN's bfloat16, its ops compute in float32, but kernels of this project may multiply pairs.
  const bool in_bfloat16 = cpu::has_bfloat16();
  peaks.bfloat16_product_gflops =
      in_bfloat16 ? cpu::matmul_gflops(dnnl, DType::bfloat16) : peaks.float32_product_gflops;
  peaks.bfloat16_gflops = std::max(in_bfloat16 ? peaks.bfloat16_product_gflops : peaks.float32_gflops,
                                   cpu::register_gflops(DType::bfloat16));
  peaks.triad_gb_per_s = cpu::triad_gb_per_s();
  return peaks;
}

}  // namespace trainctl
