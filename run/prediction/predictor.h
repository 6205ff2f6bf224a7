// A trained network that predicts samples.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/exec/engine.h"
#include "parallel/trainer/predict.h"

namespace trainctl {

class World;
struct ModelInput;
struct RankDevice;
struct RestoreSource;
struct RunSpec;

class Predictor {
 public:
  // Builds the config's network without its losses, for batches of the source, of which this rank computes its share.
  // `inputs`: the samples' format. The weights come from `stored`, which rank 0 has. Throws ConfigError, and Error if
  // the checkpoint is of another network. Collective.
  Predictor(const RunSpec& spec, const std::vector<ModelInput>& inputs, const BatchSource& source,
            const BatchDivision& division, RankDevice& device, const RestoreSource& stored, World& world);

  // The shape of each output for a sample.
  std::vector<Shape> outputs() const;
  // Calls predict() for the source. Collective.
  void run(BatchSource& source, const std::function<bool(const Predictions&)>& take);

 private:
  RankDevice& device_;
  World& world_;
  PredictionPrograms programs_;
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace trainctl
