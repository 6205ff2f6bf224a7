// What a checkpoint holds, for people and as JSON, and whether it is whole.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/checkpoint/manifest.h"

namespace trainctl {

// Over a tensor's values, in float64.
struct TensorStatistics {
  double mean = 0;
  double deviation = 0;  // standard deviation
  double norm = 0;       // Euclidean
};

struct Inspection {
  std::string path;
  std::optional<Manifest> manifest;  // nothing where it cannot be read
  std::string problem;               // empty: whole
  std::string weights_sha256;        // of the weights that were read; empty if the checkpoint is damaged
  // Of whole tensors, by name; empty where the checkpoint is damaged.
  std::map<std::string, TensorStatistics> weights, state;
};

// Reads and verifies a checkpoint, by its folder or a link, or all of a run directory, the newest first; what a running
// trainctl removes meanwhile is left out. Damage is a finding. Throws Error{config} where there is no checkpoint, and
// what is no damage.
std::vector<Inspection> inspect_all(const std::string& path);

// Everything that is known.
Json to_json(const Inspection& inspection);

// Step, epoch, mesh, metrics, and a table of the tensors; of a checkpoint whose manifest can be read.
std::string describe(const Inspection& inspection);

}  // namespace trainctl
