// The opened data of a run: the facts that a model needs, and sources of batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "io/loader/kept_input.h"
#include "io/loader/loader.h"
#include "io/loader/options.h"
#include "io/loader/part.h"

namespace trainctl {

class Data {
 public:
  // Whether `normalize: measured` reads the training part; `no` where samples must not be read, nor kept by a cache.
  enum class Measure { yes, no };

  // Opens all parts that the config names and measures what `normalize: measured` asks for. `seed` is the run's seed,
  // for the split, augmentation and synthetic data; `use` is the meaning of arrays for loss and network. Throws
  // Error{data}, {config} or {resource}.
  Data(const DataOptions& options, std::uint64_t seed, const DataUse& use = {}, Measure measure = Measure::yes);

  const DataInfo& info() const { return info_; }
  bool has(PartKind part) const { return parts_[static_cast<std::size_t>(part)] != nullptr; }
  // A part that the config names; null for one that it does not.
  const std::shared_ptr<const DataPart>& part(PartKind part) const { return parts_[static_cast<std::size_t>(part)]; }
  std::int64_t samples(PartKind part) const { return has(part) ? parts_[static_cast<std::size_t>(part)]->size() : 0; }
  // The measured statistics, in the order of the `normalize: measured` items, for the resolved config.
  const std::vector<Statistics>& measured() const { return measured_; }
  // What `predict` needs of the model's inputs, in their order.
  const std::vector<KeptInput>& kept_inputs() const { return kept_; }

  // The training part's batches, endless, from position `start` on. `batch_size` counts the samples of all ranks.
  // `cores` bounds this rank's workers where `workers` is auto; 0: the cores that the process may use. `targets` are
  // the forms that the program reads; where empty, label_mode states the forms. The inputs lie in memory of `allocate`.
  // `stop_requested` is that of LoaderOptions.
  std::unique_ptr<BatchSource> training(std::int64_t batch_size, const Sharer& rank, const DataPosition& start,
                                        int cores = 0, const std::vector<TargetForm>& targets = {},
                                        const AllocateBatch& allocate = {},
                                        const std::function<bool()>& stop_requested = {}) const;
  // The options of the loader that training() makes, of the same arguments.
  LoaderOptions training_loader(std::int64_t batch_size, const Sharer& rank, const DataPosition& start, int cores,
                                const std::vector<TargetForm>& targets, const AllocateBatch& allocate) const;
  // The batches of a part from its first sample to its last, without augmentation, in the same order every time; begins
  // again after the batch that is the last of its epoch. Arguments as in training().
  std::unique_ptr<BatchSource> evaluation(PartKind part, std::int64_t batch_size, const Sharer& rank, int cores = 0,
                                          const std::vector<TargetForm>& targets = {},
                                          const AllocateBatch& allocate = {},
                                          const std::function<bool()>& stop_requested = {}) const;

 private:
  int workers(int cores) const;
  std::vector<TargetForm> forms_of(const std::vector<TargetForm>& wanted) const;

  DataOptions options_;
  std::uint64_t seed_;
  DataInfo info_;
  std::array<std::shared_ptr<const DataPart>, 3> parts_;  // by PartKind
  std::vector<Statistics> measured_;
  std::vector<KeptInput> kept_;  // by input
};

// Bytes of host memory that the batches of a run take on one rank: the sum of BatchSource::batch_bytes() of its
// training and validation sources, where that is most. `batch_size` counts the samples of all ranks and `who` has a
// share of them, both of training; a part without samples has no source.
std::int64_t batch_bytes(const DataOptions& options, const DataInfo& info, std::int64_t batch_size, const Sharer& who,
                         const std::vector<TargetForm>& forms);

// The facts of the data for a model. Where the config states the shapes and classes, files are not read: the numbers of
// samples are then 0, and the shape of targets that are values is [0]. Otherwise the data is opened; throws as Data()
// does.
DataInfo describe(const DataOptions& options, std::uint64_t seed, const DataUse& use = {});

}  // namespace trainctl
