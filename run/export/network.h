// The network of a trained run as it predicts, and the transforms of its input as a part of it, for files that other
// programs read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/graph/graph.h"
#include "core/layers/model/model_input.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"
#include "io/onnx/image_steps.h"

namespace trainctl {

struct RunSpec;

// An input that takes samples as they are stored.
struct StoredInput {
  Shape sample;  // as stored, and its dtype
  DType dtype = DType::float32;
  bool any_size = false;         // images may have other heights and widths: they are first resized to one
  std::vector<ImageStep> steps;  // what becomes of images
  ModelInput input;              // behind the steps; its format scales
};

// Throws Error{config} that names the transform for which a network has no layer.
StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept);

struct ExportedNetwork {
  Graph graph;                        // of evaluation in float32, neither cut nor fused
  std::vector<std::string> outputs;   // their names; "output" for one without
  std::optional<StoredInput> stored;  // with `preprocess`: what stands before the graph
};

// The network of a run's config, and behind each output what `predict` applies to it. `metadata` are those of the
// checkpoint. With `preprocess` the graph begins with the scaling by the config's transforms, and `stored` has the
// resizes and crops; Error{config} says which transform is none of these. Without, it takes what the transforms make
// of samples. Of several inputs, the data or the config states the shapes.
ExportedNetwork exported_network(const RunSpec& spec, const SnapshotMetadata& metadata, bool preprocess);

}  // namespace trainctl
