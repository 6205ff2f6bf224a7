// The ops of one rank's step timed on this machine, without the ranks that it would exchange data with.
#pragma once

#include <string>

#include "core/backend/communicator.h"
#include "core/compile/compile.h"
#include "core/program/build.h"
#include "parallel/plan/measured/measurements.h"

namespace trainctl {

// A rank's programs of a run that is planned.
struct MeasuredRank {
  const Compiled& compiled;
  int program = 0;          // of a full training batch
  MeshRank rank;            // in the planned mesh
  const ProgramSpec& spec;  // for the initial weights
};

// What the keys begin with: how many ranks computed on this machine at once, whose caches and memory they share. The
// number of their threads is a part of the device's fingerprint.
std::string measured_beside(int ranks);

// The keys of an op, {seconds}, and of a step outside its ops, {seconds, seconds that the later of two ranks needs
// longer than one does: the median of each}. Steps with equally many ops and batches of equal size share the latter.
std::string op_key(int ranks, const PlacedProgram& program, const PlacedOp& op);
std::string step_key(int ranks, const PlacedProgram& program);

// Whether the measurements have all kernel ops of a step, beside so many ranks.
bool has_step(const Measurements& measurements, int ranks, const PlacedProgram& program);

// Runs steps on random data for about so many seconds, half of them with their ops observed. All ranks of `together`
// do so at the same time with equal programs, and take the mean of what they found; the memory in which a run reduces
// comes from `devices`, the communicator between their devices. Collective.
Measurements measure_step(const MeasuredRank& measured, Backend& backend, Communicator& together, Communicator& devices,
                          double seconds);

}  // namespace trainctl
