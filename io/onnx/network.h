// Networks as ONNX models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/onnx/model.h"

namespace trainctl {

struct Graph;
struct NamedTensor;

// Translates a graph of evaluation that is neither cut nor fused and computes in float32. Inputs are called as their
// tensors are, outputs as `outputs` says; both have the graph's shapes, with the number of samples left open. `weights`
// are whole and all of the graph's, and kept as `dtype`: float32, or bfloat16, which rounds them; what is computed is
// float32. Throws Error{config} that names the layer of an op for which there is no translation.
OnnxModel onnx_model(const Graph& graph, std::span<const NamedTensor> weights, const std::vector<std::string>& outputs,
                     DType dtype);

}  // namespace trainctl
