// Prediction: a trained network's outputs for samples without targets, all ranks together, in the order of the samples.
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
  std::map<std::int64_t, int> by_samples;
};
// `spec` has no losses (ProgramSpec::predicts). Throws ConfigError.
PredictionPrograms prediction_programs(const ProgramSpec& spec, const BatchSource& source,
                                       const BatchDivision& division);

// What the network says of consecutive samples.
struct Predictions {
  std::int64_t first = 0;                  // number of the first sample
  std::int64_t count = 0;                  // samples
  std::vector<std::vector<float>> values;  // by output: of each sample as many as of all others
  std::vector<float> weights;              // of each sample; 0 where it could not be read and was skipped

  // What an output says of the i-th of the samples.
  std::span<const float> of(std::size_t output, std::int64_t i) const;
};

// One pass over the source. `take` is called on rank 0, for the samples of batch after batch; where it returns false
// the pass ends. The engine runs prediction_programs() of one rank alone: each holds the whole network. Collective over
// the world.
void predict(Engine& engine, const PredictionPrograms& programs, BatchSource& source, Communicator& world,
             Stream& stream, const std::function<bool(const Predictions&)>& take);

}  // namespace trainctl
