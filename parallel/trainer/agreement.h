// What all ranks agree on before they compute: that they have the same data and programs, and which kernels they run.
#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/backend/choices.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/program/program.h"
#include "parallel/comm/same_on_all.h"
#include "parallel/trainer/programs.h"

namespace trainctl {

// What decides how all ranks compute and communicate, as this rank has found it: for require_same_on_all(). `programs`
// are those of rank 0.
RankFacts job_facts(const DataInfo& data, const Backend& backend, const std::vector<Program>& programs);

// Rank 0 completes its `choices`: it compiles `programs`, those of all ranks that differ, and times what was not chosen
// yet. Returns the choices that these programs use, equal on all ranks. Of other ranks than 0 nothing is read, and
// their choices stay as they are. Collective.
KernelChoices agree_on_choices(KernelChoices& choices, const std::vector<RunPrograms>& programs, Backend& backend,
                               Communicator& world, Stream& stream);

}  // namespace trainctl
