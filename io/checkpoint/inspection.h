// Shows the contents of a checkpoint as text and as JSON, and tells whether it is damaged.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/checkpoint/manifest.h"

namespace trainctl {

// Statistics of a tensor's values, computed in float64.
struct TensorStatistics {
  double mean = 0;
  double deviation = 0;  // standard deviation
  double norm = 0;       // Euclidean norm
};

struct Inspection {
  std::string path;
  std::optional<Manifest> manifest;  // empty if the manifest cannot be read
  std::string problem;               // description of the damage; empty if the checkpoint is whole
  std::string weights_sha256;        // hash of the weights that were read; empty if the checkpoint is damaged
  // Statistics of whole tensors by name; empty if the checkpoint is damaged.
  std::map<std::string, TensorStatistics> weights, state;
};

// Reads and verifies the checkpoint in a folder or at the target of a link, or all checkpoints of a run directory, the
// newest first. Checkpoints that a running trainctl removes meanwhile are left out. Damage is returned in
// Inspection::problem; other errors, such as a file that cannot be read, are thrown. Throws Error{config} if there is
// no checkpoint.
std::vector<Inspection> inspect_all(const std::string& path);

// Returns all values of the inspection.
Json to_json(const Inspection& inspection);

// Returns step, epoch, mesh, metrics and a table of the tensors. The manifest must have been read.
std::string describe(const Inspection& inspection);

}  // namespace trainctl
