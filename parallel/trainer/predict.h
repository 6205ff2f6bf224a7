// Predicts with a trained network: computes its outputs for samples without targets on all ranks together, in the order
// of the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

class BatchSource;
class Communicator;
class Engine;
class Stream;
struct ProgramSpec;
struct BatchDivision;

// The programs of a rank that predicts its share of every batch: one for each number of samples that occurs.
struct PredictionPrograms {
  std::vector<Program> programs;
  std::map<std::int64_t, int> by_samples;  // index of the program; key: number of samples
};
// Builds the programs. `spec` must have no losses (ProgramSpec::predicts). Throws ConfigError.
PredictionPrograms prediction_programs(const ProgramSpec& spec, const BatchSource& source,
                                       const BatchDivision& division);

// The network's outputs for consecutive samples.
struct Predictions {
  std::int64_t first = 0;                  // number of the first sample
  std::int64_t count = 0;                  // number of samples
  std::vector<std::vector<float>> values;  // values of all samples, in order, of each output
  std::vector<float> weights;              // weight of each sample; 0: it could not be read and was skipped

  // Returns the values of an output for the i-th sample.
  std::span<const float> of(std::size_t output, std::int64_t i) const;
};

// Makes one pass over the source and calls `take` on rank 0 with the predictions of each batch; the pass ends early if
// `take` returns false. The engine must have the programs of prediction_programs(); each rank holds the whole network.
// All ranks of the world must call this function.
void predict(Engine& engine, const PredictionPrograms& programs, BatchSource& source, Communicator& world,
             Stream& stream, const std::function<bool(const Predictions&)>& take);

}  // namespace trainctl
