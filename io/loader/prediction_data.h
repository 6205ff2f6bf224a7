// The samples for prediction: they have no targets, and the same transforms as a run's training samples.
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
  // Opens the paths for the run's inputs with DatasetOptions::open_all_inputs(). Throws Error{data} or {config}.
  PredictionData(const DataOptions& options, const std::vector<KeptInput>& kept,
                 const std::vector<DataUse::Input>& inputs, const std::vector<std::string>& paths);

  // The inputs of the network: float32 values, or tokens.
  const std::vector<ModelInput>& inputs() const { return inputs_; }
  // The map from stored values of the first input to the values that the network reads; empty if samples are not stored
  // as bytes.
  const std::optional<Affine>& scaling() const { return scaling_; }
  std::int64_t samples() const;
  // Problems of the data that do not prevent reading it, a sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The name of a sample: "photos/cat.jpg"; for arrays and tables, its number.
  std::string name_of(std::int64_t sample) const;
  // The name without the folder that the user gave: "cat.jpg".
  std::string short_name_of(std::int64_t sample) const;

  // Returns a source of all samples in their order; after the last batch it begins again. The arguments are those of
  // Data::evaluation().
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
