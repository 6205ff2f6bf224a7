// What a checkpoint stores and restores: named tensors, whole or in parts, and the position of the run. Stored by
// io/checkpoint.
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
#include "core/tensor/extent.h"
#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace trainctl {

// A tensor in logical layout, or the part of it that a rank holds, in host memory that somebody else owns.
struct NamedTensor {
  std::string name;
  Shape shape;               // of the whole tensor
  View view;                 // float32: the elements of the extent
  TensorExtent extent = {};  // the whole tensor, unless stated
};

// Finds tensors by name, in bytewise order; pointers into `tensors`.
std::map<std::string_view, const NamedTensor*> by_name(std::span<const NamedTensor> tensors);

// The best value of the monitored metric so far, and the step at which the run had it.
struct BestResult {
  std::string monitor;  // "val_accuracy"
  bool maximum = true;  // greater is better
  double value = 0;
  std::int64_t step = 0;
};

// Everything a run needs to go on, independent of the number of ranks. On a rank that saves, the tensors are the parts
// that it holds; everything else is equal on all ranks.
struct Snapshot {
  std::int64_t step = 0;                     // steps done
  DataPosition position;                     // of the next sample
  std::vector<NamedTensor> weights;          // parameters and running statistics, bytewise by name
  std::vector<NamedTensor> state;            // optimizer state: "momentum/conv1/kernel", bytewise by name
  std::vector<int> mesh;                     // data, pipeline, tensor: the ranks that wrote it
  std::map<std::string, std::string> facts;  // small texts kept with it: kernel choices, data fingerprint
  std::map<std::string, double> metrics;     // of the last epoch and evaluation
  std::optional<BestResult> best;            // nothing where nothing was monitored yet
};

// SHA-256 over whole tensors (float32), given in bytewise order of their names: name, a zero byte, then the values
// little-endian in logical layout. Over a run's weights it is `weights_sha256`.
class WeightsHash {
 public:
  void add(std::string_view name, const View& values);
  // 64 lower-case hexadecimal digits; the object is spent afterwards.
  std::string finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

// Over whole tensors in any order.
std::string weights_sha256(std::span<const NamedTensor> tensors);

// Names of classes as a snapshot's fact "class_names" keeps them, by number: a JSON list.
inline constexpr const char* class_names_fact = "class_names";
std::string write_class_names(const std::vector<std::string>& names);
// Empty where the facts have none, or nothing that can be read.
std::vector<std::string> read_class_names(const std::map<std::string, std::string>& facts);

enum class SnapshotContent { weights, state };

// One of the files that hold a snapshot's weights, or its state.
struct SnapshotFile {
  SnapshotContent content = SnapshotContent::weights;
  int number = 1;  // from 1 to `count`
  int count = 1;   // files that hold this content together
};

// A checkpoint that is being written: a folder that bears another name until it is whole.
struct SnapshotTarget {
  std::string path;        // what it will be called, for messages
  std::string folder;      // where its files go; absolute
  std::int64_t bytes = 0;  // that all its tensors need together
};

// Writes files of a snapshot: on every rank that can write in the run directory. Implemented by io/checkpoint.
class SnapshotWriter {
 public:
  virtual ~SnapshotWriter() = default;

  // Writes parts as one file, to the disk. Returns what SnapshotStore::commit() must know of it. Throws Error{resource}
  // that begins with the target's path (disk full, not writable).
  virtual std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                            std::span<const NamedTensor> parts) = 0;
};

// Where snapshots go; on rank 0 only. Implemented by io/checkpoint.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  // Makes the folder of a new checkpoint, whose tensors need so many bytes. Throws Error{resource}.
  virtual SnapshotTarget begin(std::int64_t step, std::int64_t bytes) = 0;
  // Removes the checkpoint that was begun and not committed, if there is one.
  virtual void abandon() = 0;
  // Completes the checkpoint that was begun last, when all its files are written: `files` holds what their writers
  // returned. It is the best one where the snapshot's `best` is of its own step; the snapshot's tensors are not looked
  // at. Returns the checkpoint's path. Throws Error{resource}; the checkpoint then does not exist.
  virtual std::string commit(const Snapshot& snapshot, const std::string& weights_sha256,
                             std::span<const std::string> files) = 0;
};

}  // namespace trainctl
