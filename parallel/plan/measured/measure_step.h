// Times the ops of one rank's step on this machine, without the ranks with which it would communicate.
#pragma once

#include <optional>
#include <string>

#include "core/graph/mesh.h"
#include "parallel/plan/measured/measurements.h"
#include "parallel/plan/measured/repeated.h"

namespace trainctl {

class Backend;
class Communicator;
struct Compiled;
struct PlacedOp;
struct PlacedProgram;
struct ProgramSpec;

// The programs of a rank of the planned run.
struct MeasuredRank {
  const Compiled& compiled;
  int program = 0;          // index of the program for a full training batch
  MeshRank rank;            // position in the planned mesh
  const ProgramSpec& spec;  // provides the initial weights
};

// Returns the prefix of all keys: the number of ranks that computed on this machine at the same time and so shared its
// caches and memory. The number of these ranks' threads is part of the device's fingerprint.
std::string key_prefix(int ranks);

// Return the keys of an op and of a step. The values of an op are {seconds, spread}. The values of a step are {seconds
// outside its ops, additional seconds of the later of two ranks, spread}; the first two are medians. Steps with the
// same number of ops and the same batch size share the step's key. The spread is the uncertainty of the times: the
// fraction by which repetitions differed, or the fraction of the time in which the measured threads waited for a core.
std::string op_key(int ranks, const PlacedProgram& program, const PlacedOp& op);
std::string step_key(int ranks, const PlacedProgram& program);

// Returns the largest spread of the measurements that a step needs when `ranks` ranks compute at the same time; empty
// if a measurement is missing.
std::optional<double> step_spread(const Measurements& measurements, int ranks, const PlacedProgram& program);
// Whether all measurements that a step needs exist with a spread of at most `wide_spread` (repeated.h).
bool has_step(const Measurements& measurements, int ranks, const PlacedProgram& program);

// Runs steps on random data for about `seconds`, half of the steps with an observer of their ops. Makes two passes,
// then up to three more until two passes take equally long (Repeated). If `out_of_time` returns true, makes two short
// passes. All ranks of `together` must call this function with equal programs, to run the steps at the same time; the
// result is the mean over these ranks. `devices`, the communicator between the ranks' devices, allocates the memory for
// reductions.
Measurements measure_step(const MeasuredRank& measured, Backend& backend, Communicator& together, Communicator& devices,
                          double seconds, const OutOfTime& out_of_time = {});

}  // namespace trainctl
