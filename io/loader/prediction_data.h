// Samples without targets, on the way of a run's training samples: what a trained network is asked about.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"

namespace trainctl {

class DataSplit;

class PredictionData {
 public:
  // Opens the paths for the run's inputs, as DatasetOptions::open_inputs() does. Throws Error{data} or {config}.
  PredictionData(const DataOptions& options, const std::vector<KeptInput>& kept,
                 const std::vector<DataUse::Input>& inputs, const std::vector<std::string>& paths);

  // What the network gets: float32 values, or tokens.
  const std::vector<ModelInput>& inputs() const { return inputs_; }
  // The map from stored values of the first input to what the network gets; nothing where samples are not stored as
  // bytes.
  const std::optional<Affine>& scaling() const { return scaling_; }
  std::int64_t samples() const;
  // What is odd about the data, a sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // "photos/cat.jpg"; of arrays and tables the number of the sample.
  std::string name_of(std::int64_t sample) const;
  // The same without the folder that the user named: "cat.jpg".
  std::string short_name_of(std::int64_t sample) const;

  // All samples in their order, once; later batches begin again. Arguments as of Data::evaluation().
  std::unique_ptr<BatchSource> batches(std::int64_t batch_size, const BatchDivision& division, int cores,
                                       const AllocateBatch& allocate) const;

 private:
  const DataOptions& options_;
  std::vector<std::string> paths_;
  std::shared_ptr<const Dataset> named_;  // the data set of the first input
  std::shared_ptr<const DataSplit> split_;
  std::vector<ModelInput> inputs_;
  std::optional<Affine> scaling_;
  std::vector<std::string> warnings_;
};

}  // namespace trainctl
