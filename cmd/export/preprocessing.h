// The transforms of a network's input as a part of the network.
#pragma once

#include "core/graph/graph.h"
#include "core/graph/ops/images/padding.h"
#include "core/layers/model/model_input.h"
#include "io/loader/kept_input.h"
#include "io/loader/options.h"

namespace trainctl {

// An input that takes samples as they are stored.
struct StoredInput {
  Shape stored;      // of a sample
  Borders crop;      // what is cut off of it
  ModelInput input;  // behind the crop; its format scales
};

// Throws Error{config} that names the transform for which a network has no layer.
StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept);

// Makes the graph's only input, of shape [batch, height, width, channels], the part of a larger one that a crop leaves.
void prepend_crop(Graph& graph, const StoredInput& input);

}  // namespace trainctl
