// Translates networks to ONNX models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/onnx/model.h"

namespace trainctl {

struct Graph;
struct NamedTensor;

// Translates an evaluation graph that is neither split over ranks nor fused and computes in float32. Inputs have the
// names of their tensors, outputs the names in `outputs`; both have the graph's shapes, with the number of samples left
// open. `weights` are all weights of the graph as whole tensors. They are stored as `dtype`: float32, or bfloat16,
// which rounds them; the model computes in float32. Throws Error{config} that names the layer of an op without a
// translation.
OnnxModel onnx_model(const Graph& graph, std::span<const NamedTensor> weights, const std::vector<std::string>& outputs,
                     DType dtype);

}  // namespace trainctl
