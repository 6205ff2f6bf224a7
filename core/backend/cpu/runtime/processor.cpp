// The processor: instruction sets, name and compute threads.
#include "core/backend/cpu/runtime/processor.h"

#include <omp.h>

#include <fstream>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cpu {
namespace {

InstructionSet detect() {
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("fma")) return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet set = only_instruction_set.value_or(detect());
  return set;
}

void check_processor() {
  if (detect() >= instruction_set()) return;
  throw Error(ErrorKind::resource,
              format("this trainctl was built for processors with {}, which this processor ({}) lacks",
                     name_of(instruction_set()), processor_model()),
              "build it with `scripts/build`, for all processors");
}

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "?";
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown processor";
}

void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // bit 15: flush-to-zero; bit 6: denormals-are-zero
#endif
}

void prepare_compute_threads(int threads) {
  omp_set_num_threads(threads);
  flush_denormals();
#pragma omp parallel
  flush_denormals();
}

}  // namespace trainctl::cpu
