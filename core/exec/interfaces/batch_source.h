// The interface for training data: a source of batches, implemented by io/loader.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/memory.h"
#include "core/graph/mesh.h"
#include "core/layers/model/model_input.h"
#include "core/metrics/target_encoding.h"
#include "core/program/logical_shards.h"
#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace trainctl {

// Metadata of a data set that the model needs, found by io or set in the config.
struct DataInfo {
  std::vector<ModelInput> inputs = {ModelInput{}};   // after the transforms
  std::vector<TargetInfo> targets = {TargetInfo{}};  // in the order of the model's outputs
  Shape weight;            // shape of one sample's weights: scalar, or [P...] of its positions
  bool is_masked = false;  // whether weights of positions are a mask: positions of weight 0 do not exist
  std::int64_t training_samples = 0;
  std::int64_t validation_samples = 0;  // 0: no validation
  std::int64_t cached_bytes = 0;        // bytes of all samples in `data.cache`; 0: there is no cache
  std::string fingerprint;              // hash of the samples; a resumed run with another hash warns
  std::vector<std::string> warnings;    // unread data and likely mistakes, each with its remedy
};

// The position in the data from which a run resumes. `offset` counts the epoch's samples over all ranks.
struct DataPosition {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t offset = 0;

  bool operator==(const DataPosition&) const = default;
};

// One rank's share of a global batch, in host memory that stays valid until the next call of next().
struct Batch {
  std::vector<View> inputs;  // [n, sample...], in the dtypes of the formats in DataInfo
  // int32 [n, P...] or float32 [n, P..., K] in the requested TargetEncodings. P are the dimensions of the positions;
  // there are none if a sample has one target.
  std::vector<View> targets;
  View weights;            // float32 [n] or [n, P...]: 0 for a skipped sample, or for a position that a mask leaves out
  View samples;            // int64 [n]: numbers of the samples in the data set (core/tensor/sample_numbers.h)
  std::int64_t count = 0;  // n: number of samples of this rank; may be 0
  std::int64_t global_count = 0;  // number of samples of the global batch
  DataPosition position;          // position of the first sample of the global batch
  bool last_of_epoch = false;
  double waited_seconds = 0;  // how long next() waited for the data
  bool host_memory = false;   // whether the inputs are in memory of Backend::allocate_host()
  // False if a stop was requested before the data arrived: inputs and targets are zero, weights are NaN, so that all
  // ranks skip the step with this batch. All later batches of the source are incomplete too.
  bool complete = true;
};

// Allocates memory for batches with Backend::allocate_host(), from which devices copy while they compute. Null: batches
// are in ordinary memory.
using AllocateBatch = std::function<Memory(std::int64_t bytes)>;

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Returns this rank's share of the next global batch. After the last batch of an epoch the next epoch begins, in its
  // own order. Throws Error{data} that names the file or the sample.
  virtual const Batch& next() = 0;
  // The position after the batch that next() returned last, as checkpoints keep it.
  virtual DataPosition position() const = 0;
  virtual std::int64_t samples_per_epoch() const = 0;
  // Number of samples of a full global batch, and of the last global batch of an epoch (equal if the last batch is
  // full).
  virtual std::int64_t batch_size() const = 0;
  virtual std::int64_t last_batch_size() const = 0;
  // Bytes of host memory of this rank's batches, including batches that are prepared ahead.
  virtual std::int64_t batch_bytes() const = 0;
};

// Determines a rank's share of every batch, which is the share of its replica. If only the rank is set, all shares are
// equal.
struct BatchDivision {
  MeshRank rank;
  std::vector<double> speeds;  // speed of each replica, more than 0; shares are proportional to speeds; empty: equal
  LogicalShards shards;        // if set, shares consist of whole logical shards

  BatchDivision(MeshRank r = {}, std::vector<double> s = {}, LogicalShards l = {})
      : rank(r), speeds(std::move(s)), shards(l) {}
};

// A replica's share of a global batch of B samples: [r * B / replicas, (r + 1) * B / replicas), where r is the rank's
// position along the data axis; counts differ by one at most. With speeds the share ends at B * (speeds up to r) / (all
// speeds), rounded down; with logical shards it consists of the replica's shards, which may not be adjacent. The shares
// of all replicas make up the batch.
struct Share {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t run = 0;   // samples of each range but the last, if the share has several ranges; 0: it has one range
  std::int64_t step = 0;  // distance from the beginning of one range to the next

  // The index in the batch of the i-th sample of the share.
  std::int64_t at(std::int64_t i) const { return first + (run == 0 ? i : i / run * step + i % run); }
};
Share share_of(std::int64_t batch, const BatchDivision& division);

// Returns the division of evaluation batches for a division of training batches: the same division or, with logical
// shards, one shard for each replica.
BatchDivision evaluation_division(BatchDivision training);
// The number of samples of an evaluation batch, given the number of samples of a training batch.
std::int64_t evaluation_batch(std::int64_t training_batch, const BatchDivision& division);

// The number of samples of the largest share of a batch: no share of a smaller batch has more.
std::int64_t largest_share(std::int64_t batch, const BatchDivision& division);

}  // namespace trainctl
