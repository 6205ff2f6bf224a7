// The opened data of a run: the info that a model needs, and sources of batches.
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
struct LoaderOptions;

class Data {
 public:
  // Whether `normalize: measured` reads the training split; `no` where samples must not be read, nor kept by a cache.
  enum class Measure { yes, no };

  // Opens all splits that the config names and measures what `normalize: measured` asks for. `seed` is the run's seed,
  // for splitting validation off, augmentation and synthetic data; `use` is the meaning of arrays for loss and network.
  // Throws Error{data}, {config} or {resource}.
  Data(const DataOptions& options, std::uint64_t seed, const DataUse& use = {}, Measure measure = Measure::yes);

  const DataInfo& info() const { return info_; }
  bool has(SplitKind split) const { return splits_[static_cast<std::size_t>(split)] != nullptr; }
  // A split that the config names; null for one that it does not.
  const std::shared_ptr<const DataSplit>& split(SplitKind split) const {
    return splits_[static_cast<std::size_t>(split)];
  }
  std::int64_t samples(SplitKind split) const;
  // The measured statistics, in the order of the `normalize: measured` items, for the resolved config.
  const std::vector<Statistics>& measured() const { return measured_; }
  // What `predict` needs of the model's inputs, in their order.
  const std::vector<KeptInput>& kept_inputs() const { return kept_; }

  // The training split's batches, endless, from position `start` on. `batch_size` counts the samples of all ranks.
  // `cores` bounds this rank's workers where `workers` is auto; 0: the cores that the process may use. `targets` are
  // the forms that the program reads; where empty, label_mode states the forms. The inputs lie in memory of `allocate`.
  // `stop_requested` is that of LoaderOptions.
  std::unique_ptr<BatchSource> training(std::int64_t batch_size, const BatchDivision& division,
                                        const DataPosition& start, int cores = 0,
                                        const std::vector<TargetEncoding>& targets = {},
                                        const AllocateBatch& allocate = {},
                                        const std::function<bool()>& stop_requested = {}) const;
  // The options of the loader that training() makes, of the same arguments.
  LoaderOptions training_loader(std::int64_t batch_size, const BatchDivision& division, const DataPosition& start,
                                int cores, const std::vector<TargetEncoding>& targets,
                                const AllocateBatch& allocate) const;
  // The batches of a split from its first sample to its last, without augmentation, in the same order every time;
  // begins again after the batch that is the last of its epoch. Arguments as in training().
  std::unique_ptr<BatchSource> evaluation(SplitKind split, std::int64_t batch_size, const BatchDivision& division,
                                          int cores = 0, const std::vector<TargetEncoding>& targets = {},
                                          const AllocateBatch& allocate = {},
                                          const std::function<bool()>& stop_requested = {}) const;

 private:
  int workers(int cores) const;
  std::vector<TargetEncoding> forms_of(const std::vector<TargetEncoding>& wanted) const;

  DataOptions options_;
  std::uint64_t seed_;
  DataInfo info_;
  std::array<std::shared_ptr<const DataSplit>, 3> splits_;  // by SplitKind
  std::vector<Statistics> measured_;
  std::vector<KeptInput> kept_;  // by input
};

// Bytes of host memory that the batches of a run take on one rank: the sum of BatchSource::batch_bytes() of its
// training and validation sources, where that is most. `batch_size` counts the samples of all ranks and `who` has a
// share of them, both of training; a split without samples has no source.
std::int64_t batch_bytes(const DataOptions& options, const DataInfo& info, std::int64_t batch_size,
                         const BatchDivision& division, const std::vector<TargetEncoding>& forms);

// The info of the data for a model. Where the config states the shapes and classes, files are not read: the numbers of
// samples are then 0, and the shape of targets that are values is [0]. Otherwise the data is opened; throws as Data()
// does.
DataInfo describe(const DataOptions& options, std::uint64_t seed, const DataUse& use = {});

}  // namespace trainctl
