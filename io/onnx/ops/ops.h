// The translations of ops, one for each kind, and what several of them share.
#pragma once

#include <string>

#include "core/graph/ops/elementwise/activations.h"
#include "io/onnx/op.h"

namespace trainctl::onnx {

void activation(const OnnxOp& op);
void add(const OnnxOp& op);
void add_bias(const OnnxOp& op);
void batch_norm_inference(const OnnxOp& op);
void cast(const OnnxOp& op);
void concatenate(const OnnxOp& op);
void conv2d(const OnnxOp& op);
void conv2d_grad_input(const OnnxOp& op);
void crop2d(const OnnxOp& op);
void dense(const OnnxOp& op);
void embedding(const OnnxOp& op);
void extremum(const OnnxOp& op);
void global_average_pool2d(const OnnxOp& op);
void global_max_pool2d(const OnnxOp& op);
void group_norm(const OnnxOp& op);
void layer_norm(const OnnxOp& op);
void multiply(const OnnxOp& op);
void normalize(const OnnxOp& op);
void pad2d(const OnnxOp& op);
void permute(const OnnxOp& op);
void pool2d(const OnnxOp& op);
void prelu(const OnnxOp& op);
void recurrent(const OnnxOp& op);
void reshape(const OnnxOp& op);
void scale_by(const OnnxOp& op);
void softmax(const OnnxOp& op);
void upsample2d(const OnnxOp& op);

// f(x), appended to the nodes of an op.
std::string activated(const OnnxOp& op, const ActivationFunction& function, const std::string& x);

}  // namespace trainctl::onnx
