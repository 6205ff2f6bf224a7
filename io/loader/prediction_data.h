// Samples without targets, on the way of a run's training samples: what a trained network is asked about.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "io/loader/kept_input.h"
#include "io/loader/options.h"
#include "io/loader/part.h"

namespace trainctl {

class PredictionData {
 public:
  // Opens the paths as DatasetOptions::open_inputs() does, for the run's only input. Throws Error{data} or {config}.
  PredictionData(const DataOptions& options, const KeptInput& kept, const DataUse::Input& input,
                 const std::vector<std::string>& paths);

  // What the network gets: float32 values, or tokens.
  const ModelInput& input() const { return input_; }
  std::int64_t samples() const { return part_->size(); }
  // "photos/cat.jpg"; of arrays and tables the number of the sample.
  std::string name_of(std::int64_t sample) const;

  // All samples in their order, once; later batches begin again. Arguments as of Data::evaluation().
  std::unique_ptr<BatchSource> batches(std::int64_t batch_size, const Sharer& rank, int cores,
                                       const AllocateBatch& allocate) const;

 private:
  const DataOptions& options_;
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const DataPart> part_;
  ModelInput input_;
};

}  // namespace trainctl
