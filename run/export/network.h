// Builds the network of a trained run for prediction, optionally with the transforms of its input, for files that other
// programs read.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/graph/graph.h"
#include "core/layers/model/layer_line.h"
#include "core/layers/model/model_input.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"
#include "io/onnx/image_steps.h"

namespace trainctl {

struct RunSpec;

// An input that accepts samples as they are stored.
struct StoredInput {
  Shape sample;  // as stored
  DType dtype = DType::float32;
  bool any_size = false;         // images may have any height and width, since they are resized first
  std::vector<ImageStep> steps;  // the resizes and crops of images
  ModelInput input;              // after the steps; its format scales the values
};

// Returns the input that replaces the config's transforms. Throws Error{config} that names a transform for which a
// network has no layer.
StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept);

// Returns the stored input of a run's network of one input; no value if the network has several inputs, or an older
// trainctl wrote the checkpoint. Throws the errors of stored_input(). `metadata`: of the checkpoint.
std::optional<StoredInput> only_stored_input(const RunSpec& spec, const SnapshotMetadata& metadata);

// The inputs of a run's network for transformed samples. `metadata`: of the checkpoint. The shapes of several inputs
// are those of the data or of the config.
std::vector<ModelInput> transformed_inputs(const RunSpec& spec, const SnapshotMetadata& metadata);

struct ExportedNetwork {
  Graph graph;                        // graph for evaluation in float32, neither split nor fused
  std::vector<std::string> outputs;   // their names; "output" for an output without a name
  std::vector<LayerLine> layers;      // the layers that the user wrote
  std::set<std::string> blocks;       // paths of blocks, whose layers are layers of their own (BuiltModel::blocks)
  std::optional<StoredInput> stored;  // with `preprocess`: the steps before the graph
};

// Builds the network of a run's config, followed by the activations that `predict` applies to its outputs. `metadata`:
// of the checkpoint. With `preprocess` the graph begins with the scaling of the config's transforms, and `stored` has
// the resizes and crops; throws Error{config} that names any other transform. Without it the graph accepts transformed
// samples.
ExportedNetwork exported_network(const RunSpec& spec, const SnapshotMetadata& metadata, bool preprocess);

}  // namespace trainctl
