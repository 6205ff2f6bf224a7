// The ops of one rank's step timed on this machine, without the ranks that it would exchange data with.
#pragma once

#include <optional>
#include <string>

#include "core/graph/mesh.h"
#include "parallel/plan/measured/measurements.h"

namespace trainctl {

class Backend;
class Communicator;
struct Compiled;
struct PlacedOp;
struct PlacedProgram;
struct ProgramSpec;

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

// The keys of an op, {seconds, spread}, and of a step outside its ops, {seconds, seconds that the later of two ranks
// needs longer than one does: the median of each; spread}. Steps with equally many ops and batches of equal size share
// the latter. The spread says how certain the times are: by which part repetitions differed, or the measured threads
// waited for their cores.
std::string op_key(int ranks, const PlacedProgram& program, const PlacedOp& op);
std::string step_key(int ranks, const PlacedProgram& program);

// The largest spread of the measurements that a step needs, beside so many ranks; nothing where one is missing.
std::optional<double> step_spread(const Measurements& measurements, int ranks, const PlacedProgram& program);
// Whether the measurements have all that a step needs, with a spread of at most `wide_spread` (repeated.h).
bool has_step(const Measurements& measurements, int ranks, const PlacedProgram& program);

// Runs steps on random data for about `seconds`, half of them with their ops observed: in two passes, then in up to
// three more, until two of them take equally long (Repeated). All ranks of `together` do so at the same time with equal
// programs, and the result is the mean over them. The memory in which a run reduces comes from `devices`, the
// communicator between the ranks' devices. Collective.
Measurements measure_step(const MeasuredRank& measured, Backend& backend, Communicator& together, Communicator& devices,
                          double seconds);

}  // namespace trainctl
