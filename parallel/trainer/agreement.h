// What all ranks agree on before they compute: that they have the same data and programs, and which kernels they run.
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

// What decides how all ranks compute and communicate, as this rank has found it: for require_same_on_all(). `programs`
// are those of rank 0.
RankValues job_values(const DataInfo& data, const Backend& backend, const std::vector<Program>& programs);

struct AgreedKernels {
  KernelChoices choices;  // that the programs use
  std::string hash;       // of the device and of the choices for the programs of full training batches (kernel_hash())
};

// Rank 0 completes its `choices`: it compiles `programs`, those of all ranks that differ, and chooses what was not
// chosen yet. What it returns is equal on all ranks. Of other ranks than 0 nothing is read, and their choices stay as
// they are. Collective.
AgreedKernels agree_on_kernels(KernelChoices& choices, const std::vector<RunPrograms>& programs, Backend& backend,
                               Communicator& world, Stream& stream);

}  // namespace trainctl
