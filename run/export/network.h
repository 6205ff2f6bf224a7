// The network of a trained run as it predicts, for files that other programs read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "run/export/preprocessing.h"
#include "run/run_spec.h"

namespace trainctl {

struct ExportedNetwork {
  Graph graph;                        // of evaluation in float32, neither cut nor fused
  std::vector<std::string> outputs;   // their names; "output" for one without
  std::optional<StoredInput> stored;  // with `preprocess`: what stands before the graph
};

// The network of a run's config, and behind each output what `predict` applies to it. `facts` are those of the
// checkpoint. With `preprocess` the graph begins with the scaling by the config's transforms, and `stored` has the
// resizes and crops; Error{config} says which transform is none of these. Without, it takes what the transforms make
// of samples. Of several inputs, the data or the config states the shapes.
ExportedNetwork exported_network(const RunSpec& spec, const std::map<std::string, std::string>& facts, bool preprocess);

}  // namespace trainctl
