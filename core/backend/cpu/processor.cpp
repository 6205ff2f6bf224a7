// The processor: instruction sets, name, memory, compute threads.
#include "core/backend/cpu/processor.h"

#include <omp.h>

#include <algorithm>
#include <fstream>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// The number after `field` in a file of lines "field number"; the whole file's first number where `field` is empty.
std::int64_t number_in(const char* path, std::string_view field) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (field.empty()) return std::isdigit(static_cast<unsigned char>(word[0])) ? std::stoll(word) : 0;
    if (word == field && file >> word) return std::stoll(word);
  }
  return 0;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet set = detect();
  return set;
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

std::int64_t available_memory() {
  std::int64_t available = number_in("/proc/meminfo", "MemAvailable:") * 1024;
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max", "");
  if (limit > 0) {
    const std::int64_t left = std::max<std::int64_t>(limit - number_in("/sys/fs/cgroup/memory.current", ""), 0);
    available = available > 0 ? std::min(available, left) : left;
  }
  return available;
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
