// Ensures before training that all ranks have the same data and programs, and chooses the kernels that all ranks run.
#pragma once

#include <string>
#include <vector>

#include "core/backend/choices.h"
#include "parallel/comm/same_on_all.h"

namespace trainctl {

class Backend;
class Communicator;
class RunPrograms;
class Stream;
struct DataInfo;
struct Program;

// Returns this rank's values that must be equal on all ranks, for require_same_on_all(): device, data and programs.
// `programs`: rank 0's programs, which every rank builds for this comparison.
RankValues job_values(const DataInfo& data, const Backend& backend, const std::vector<Program>& programs);

struct AgreedKernels {
  KernelChoices choices;  // choices that the programs use
  std::string hash;       // kernel_hash() of the device and of the choices for the programs of full training batches
};

// Completes the `choices` of rank 0: it compiles `programs` (the different programs of all ranks) and makes the missing
// choices. All ranks must call this function; the result is equal on all ranks. The other ranks read no argument and
// leave `choices` unchanged.
AgreedKernels agree_on_kernels(KernelChoices& choices, const std::vector<RunPrograms>& programs, Backend& backend,
                               Communicator& world, Stream& stream);

}  // namespace trainctl
