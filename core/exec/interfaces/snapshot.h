// The content of a checkpoint: named tensors, whole or in shards, and the position of the run. io/checkpoint reads and
// writes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/tensor/extent.h"
#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace trainctl {

// A float32 tensor in logical layout, or a rank's shard of such a tensor. The struct does not own the memory on the
// host.
struct NamedTensor {
  std::string name;
  Shape shape;               // shape of the whole tensor
  View view;                 // float32: the elements of the extent
  TensorExtent extent = {};  // range in the whole tensor; default: the whole tensor
};

// The tensors by name, in bytewise order; the pointers point into `tensors`.
std::map<std::string_view, const NamedTensor*> by_name(std::span<const NamedTensor> tensors);

// The best value of the monitored metric so far, and its step.
struct BestResult {
  std::string monitor;  // "val_accuracy"
  bool maximum = true;  // greater is better
  double value = 0;
  std::int64_t step = 0;
};

// The state from which a run resumes, with any number of ranks. On a rank that saves, the tensors are this rank's
// shards; all other members are equal on all ranks.
struct Snapshot {
  std::int64_t step = 0;             // number of steps done
  DataPosition position;             // position of the next sample
  std::vector<NamedTensor> weights;  // parameters and running statistics, bytewise by name
  std::vector<NamedTensor> state;    // optimizer state: "momentum/conv1/kernel", bytewise by name
  std::vector<int> mesh;             // sizes of the data, pipeline and tensor axes in the run that wrote the snapshot
  SnapshotMetadata metadata;
  std::map<std::string, double> metrics;  // results of the last epoch and evaluation
  std::optional<BestResult> best;         // empty before the first monitored value
};

// SHA-256 over whole float32 tensors, added in bytewise order of their names: name, a zero byte, then the values,
// little-endian in logical layout. The hash of a run's weights is `weights_sha256`.
class WeightsHash {
 public:
  void add(std::string_view name, const View& values);
  // Returns 64 lower-case hexadecimal digits; the object cannot be used afterwards.
  std::string finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

// The hash of whole tensors given in any order.
std::string weights_sha256(std::span<const NamedTensor> tensors);

// The key of the names of classes, ordered by class number: a JSON list.
inline constexpr const char* class_names_key = "class_names";
std::string write_class_names(const std::vector<std::string>& names);
// Returns an empty list if the key is absent or unreadable.
std::vector<std::string> read_class_names(const SnapshotMetadata& metadata);

// What a file of a snapshot holds: parameters and running statistics, or the optimizer's state.
enum class SnapshotContent { weights, state };

// Identifies one of the files that hold a snapshot's weights or state.
struct SnapshotFile {
  SnapshotContent content = SnapshotContent::weights;
  int number = 1;  // number of the file, from 1 to `count`
  int count = 1;   // number of files of this content
};

// A checkpoint that is being written, under a temporary name until it is complete.
struct SnapshotTarget {
  std::string path;        // its final name, for messages
  std::string address;     // the address by which sinks find it on every rank: for a folder, its absolute path
  std::int64_t bytes = 0;  // bytes of all tensors together
};

// Stores the files of a snapshot, on every rank that can reach the storage: a folder that the hosts share
// (io/checkpoint), the memory of a process, another host.
class SnapshotSink {
 public:
  virtual ~SnapshotSink() = default;

  // Writes the shards as one file. When it returns, the file is durable if the sink's files outlive the process.
  // Returns a description of the file, with the hashes of its shards, for SnapshotStore::commit(). Throws
  // Error{resource} that begins with the target's path (disk full, not writable).
  virtual std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                            std::span<const NamedTensor> shards) = 0;
};

// The list of a run's snapshots, used on rank 0 only; the sinks of all ranks store their files. Used by one thread at a
// time. Implemented by io/checkpoint.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  // Prepares the storage of a new checkpoint with `bytes` bytes of tensors. Throws Error{resource}.
  virtual SnapshotTarget begin(std::int64_t step, std::int64_t bytes) = 0;
  // Removes the checkpoint that was begun and not committed, if there is one.
  virtual void abandon() = 0;
  // Completes the checkpoint that was begun last, once all its files are written: `files` holds the descriptions that
  // the sinks returned. The checkpoint is the best one if the snapshot's `best` has the snapshot's own step. The
  // snapshot's tensors are not read. Returns the checkpoint's path. Throws Error{resource}; no checkpoint is then left.
  virtual std::string commit(const Snapshot& snapshot, std::span<const std::string> files) = 0;
};

}  // namespace trainctl
