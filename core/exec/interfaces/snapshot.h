// What a checkpoint stores and restores: named tensors and the position of the run. Stored by io/checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace trainctl {

// A tensor in logical layout, in host memory that somebody else owns.
struct NamedTensor {
  std::string name;
  Shape shape;
  View view;  // float32
};

// The best value of the monitored metric so far, and the step at which the run had it.
struct BestResult {
  std::string monitor;  // "val_accuracy"
  bool maximum = true;  // greater is better
  double value = 0;
  std::int64_t step = 0;
};

// Everything a run needs to go on, independent of the number of ranks.
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

// SHA-256 over tensors (float32) in bytewise order of their names: name, a zero byte, then the values little-endian in
// logical layout. Over a run's weights it is `weights_sha256`. 64 lower-case hexadecimal digits.
std::string weights_sha256(std::span<const NamedTensor> tensors);

// Names of classes as a snapshot's fact "class_names" keeps them, by number: a JSON list.
inline constexpr const char* class_names_fact = "class_names";
std::string write_class_names(const std::vector<std::string>& names);
// Empty where the facts have none, or nothing that can be read.
std::vector<std::string> read_class_names(const std::map<std::string, std::string>& facts);

// Compares names and shapes of what a checkpoint holds with what the model expects (views are not looked at). Throws
// Error{config} that begins with `checkpoint`, the checkpoint's path, and names the tensors that differ.
void require_same_tensors(std::string_view checkpoint, std::span<const NamedTensor> found,
                          std::span<const NamedTensor> expected);

// Where snapshots go. Implemented by io/checkpoint; called on rank 0 only.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  // Writes it whole or not at all; it is the best one where its `best` is of its own step. Returns the checkpoint's
  // path. Throws Error{resource} (disk full, not writable).
  virtual std::string save(const Snapshot& snapshot) = 0;
};

}  // namespace trainctl
