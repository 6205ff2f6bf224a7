// The data of a run, opened: what a model needs to know of it, and sources of batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "io/loader/options.h"
#include "io/loader/part.h"

namespace trainctl {

class Data {
 public:
  // Whether `normalize: measured` reads the training part; without it, samples are not to be read.
  enum class Measure { yes, no };

  // Opens all parts that the config names, measures what `normalize: measured` asks for. `seed` is the run's: of the
  // split, of augmentation, of synthetic data. `use`: what loss and network make of
  // arrays. Throws Error{data}, {config} or {resource}.
  Data(const DataOptions& options, std::uint64_t seed, const DataUse& use = {}, Measure measure = Measure::yes);

  const DataInfo& info() const { return info_; }
  bool has(PartKind part) const { return parts_[static_cast<std::size_t>(part)] != nullptr; }
  std::int64_t samples(PartKind part) const { return has(part) ? parts_[static_cast<std::size_t>(part)]->size() : 0; }
  // What was measured, one for each `normalize: measured` in their order: for the resolved config.
  const std::vector<Statistics>& measured() const { return measured_; }

  // Endless, from `start` on. `cores` of this rank bound the threads where `workers` is auto; 0: those that the process
  // may use. Targets come in the forms that the program reads; without them as label_mode alone states it. Inputs lie
  // in memory of `allocate`. `stop_requested`: see LoaderOptions.
  std::unique_ptr<BatchSource> training(std::int64_t batch_size, const MeshRank& rank, const DataPosition& start,
                                        int cores = 0, const std::vector<TargetForm>& targets = {},
                                        const AllocateBatch& allocate = {},
                                        const std::function<bool()>& stop_requested = {}) const;
  // A part from its first sample to its last, without augmentation, in the same order every time; begins again behind
  // the batch that is the last of its epoch.
  std::unique_ptr<BatchSource> evaluation(PartKind part, std::int64_t batch_size, const MeshRank& rank, int cores = 0,
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
};

// Bytes of host memory that the batches of a run lie in on one rank: what its sources of training and validation take
// together, BatchSource::batch_bytes(). `batch_size` of all ranks; a part without samples has no source.
std::int64_t batch_bytes(const DataOptions& options, const DataInfo& info, std::int64_t batch_size, int ranks,
                         const std::vector<TargetForm>& forms);

// What a model needs to know. Where the config states shape and classes of files these are not read: numbers of samples
// are then 0, and the shape of targets that are values is [0]. Otherwise as the data is.
DataInfo describe(const DataOptions& options, std::uint64_t seed, const DataUse& use = {});

}  // namespace trainctl
