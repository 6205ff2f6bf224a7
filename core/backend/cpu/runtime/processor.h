// The processor: its instruction sets, its name, and the set-up of its compute threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "built_for.h"

namespace trainctl::cpu {

// The instruction sets for which the kernels of this project are compiled.
enum class InstructionSet { baseline, avx2, avx512 };

// The instruction set of the processor on which this program was built, if it was built for that processor alone.
inline constexpr std::optional<InstructionSet> only_instruction_set = TRAINCTL_BUILT_FOR;

// The instruction set whose kernels run: the best one of this processor, or only_instruction_set.
InstructionSet instruction_set();
// Throws Error{resource} if this processor lacks the instruction set that the program was built for.
void check_processor();
std::string_view name_of(InstructionSet set);

// The model name in /proc/cpuinfo, such as "AMD EPYC 9B45".
std::string processor_model();

// Sets the number of OpenMP threads of the calling thread and makes it and its workers flush denormals to zero: kernels
// on denormal values run up to 80 times slower.
void prepare_compute_threads(int threads);

// Sets flush-to-zero and denormals-are-zero for the calling thread.
void flush_denormals();

}  // namespace trainctl::cpu
