// The data of a run, opened: the info that a model needs, and sources of batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"

namespace trainctl {

class DataSplit;
class FlightRecord;
struct InputPlan;
struct LoaderOptions;
struct OpenedSplit;
struct TransformPlan;

class Data {
 public:
  // Whether `normalize: measured` reads the training split. `no`: samples must not be read, and a cache must not keep
  // any samples.
  enum class Measure { yes, no };

  // Opens all splits that the config names and measures the statistics for `normalize: measured`. `seed` is the run's
  // seed, for splitting off validation samples, augmentation and synthetic data; `use` is the meaning of arrays for the
  // loss and the network. Throws Error{data}, {config} or {resource}.
  Data(const DataOptions& options, std::uint64_t seed, const DataUse& use = {}, Measure measure = Measure::yes);

  const DataInfo& info() const { return info_; }
  bool has(SplitKind split) const { return splits_[static_cast<std::size_t>(split)] != nullptr; }
  // A split of the data; null if the config does not name it.
  const std::shared_ptr<const DataSplit>& split(SplitKind split) const {
    return splits_[static_cast<std::size_t>(split)];
  }
  std::int64_t samples(SplitKind split) const;
  // The measured statistics, in the order of the `normalize: measured` items, for the resolved config.
  const std::vector<Statistics>& measured() const { return measured_; }
  // The info about the model's inputs that `predict` needs, in their order.
  const std::vector<KeptInput>& kept_inputs() const { return kept_; }
  // The info about targets that are images, with which `predict` writes images; empty for other targets.
  const std::vector<KeptInput>& kept_targets() const { return kept_targets_; }

  // Returns an endless source of the training split's batches from position `start` on. `batch_size` counts the samples
  // of all ranks. `cores` limits this rank's workers if `workers` is auto; 0: the cores that the process may use.
  // `targets` are the target encodings that the program reads; if empty, label_mode determines them. The inputs are
  // stored in memory from `allocate`. `stop_requested` and `flight` are described in LoaderOptions.
  std::unique_ptr<BatchSource> training(std::int64_t batch_size, const BatchDivision& division,
                                        const DataPosition& start, int cores = 0,
                                        const std::vector<TargetEncoding>& targets = {},
                                        const AllocateBatch& allocate = {},
                                        const std::function<bool()>& stop_requested = {},
                                        const std::function<FlightRecord*()>& flight = {}) const;
  // Returns the numbers in the data set of the `count` training samples from a position on, in the order of training.
  std::vector<std::int64_t> sample_numbers(const DataPosition& position, std::int64_t count) const;
  // Returns the options of the loader that training() makes from the same arguments.
  LoaderOptions training_loader(std::int64_t batch_size, const BatchDivision& division, const DataPosition& start,
                                int cores, const std::vector<TargetEncoding>& targets,
                                const AllocateBatch& allocate) const;
  // Returns a source of the batches of a split from its first sample to its last, without augmentation and always in
  // the same order; after the last batch of an epoch it begins again. The arguments are those of training().
  std::unique_ptr<BatchSource> evaluation(SplitKind split, std::int64_t batch_size, const BatchDivision& division,
                                          int cores = 0, const std::vector<TargetEncoding>& targets = {},
                                          const AllocateBatch& allocate = {},
                                          const std::function<bool()>& stop_requested = {},
                                          const std::function<FlightRecord*()>& flight = {}) const;

 private:
  // Makes the plan of targets that are images, and keeps the info about them; nullopt for other targets.
  std::optional<TransformPlan> target_plan(const OpenedSplit& training, const DataUse& use, const InputPlan& images,
                                           Measure measure);
  int workers(int cores) const;
  std::vector<TargetEncoding> encodings_of(const std::vector<TargetEncoding>& given) const;

  DataOptions options_;
  std::uint64_t seed_;
  DataInfo info_;
  std::array<std::shared_ptr<const DataSplit>, 3> splits_;  // indexed by SplitKind
  std::vector<Statistics> measured_;
  std::vector<KeptInput> kept_;  // one for each input
  std::vector<KeptInput> kept_targets_;
};

// Returns the bytes of host memory that the batches of a run take on one rank: the sum of BatchSource::batch_bytes() of
// its training and validation sources, for the rank with the largest sum. `batch_size` counts the training samples of
// all ranks, and `division` describes how they are divided among the ranks. A split without samples has no source.
std::int64_t batch_bytes(const DataOptions& options, const DataInfo& info, std::int64_t batch_size,
                         const BatchDivision& division, const std::vector<TargetEncoding>& encodings);

// Makes the files that opening the data needs and the user's cache does not hold, such as the token files of texts.
// Called before ranks are started, since it may take longer than ranks wait for each other. `progress` receives the
// number of bytes done and their total for each file that is made. Throws the errors of Data().
void prepare_data(const DataOptions& options,
                  const std::function<void(std::int64_t done, std::int64_t total)>& progress = {});

// Whether all files and folders that the config names for its splits exist on this host.
bool is_here(const DataOptions& options);

// Returns the info of the data for a model. If the config sets the shapes and classes, files are not read: the numbers
// of samples are then 0, and the shape of targets that are values is [0]. Otherwise opens the data and throws the
// errors of Data().
DataInfo describe(const DataOptions& options, std::uint64_t seed, const DataUse& use = {});

}  // namespace trainctl
