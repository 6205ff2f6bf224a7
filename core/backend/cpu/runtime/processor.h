// The processor: its instruction sets, its name, and the set-up of its compute threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainctl::cpu {

// The instruction sets for which the kernels of this project are compiled.
enum class InstructionSet { baseline, avx2, avx512 };

// The best instruction set of this processor. Constant during a run.
InstructionSet instruction_set();
std::string_view name_of(InstructionSet set);

// The model name in /proc/cpuinfo, such as "AMD EPYC 9B45".
std::string processor_model();

// Sets the number of OpenMP threads of the calling thread and makes it and its workers flush denormals to zero: kernels
// on denormal values run up to 80 times slower.
void prepare_compute_threads(int threads);

// Sets flush-to-zero and denormals-are-zero for the calling thread.
void flush_denormals();

}  // namespace trainctl::cpu
