// Declares the translations of ops, one for each kind, and a helper for activations.
#pragma once

#include <string>

#include "core/graph/op_kinds.h"
#include "io/onnx/op.h"

namespace trainctl {
struct ActivationFunction;
}

namespace trainctl::onnx {

#define TRAINCTL_DECLARE_TRANSLATION(kind) void kind(const OnnxOp& op);
TRAINCTL_EXPORTED_OPS(TRAINCTL_DECLARE_TRANSLATION)
TRAINCTL_EXPORTED_VIEWS(TRAINCTL_DECLARE_TRANSLATION)
#undef TRAINCTL_DECLARE_TRANSLATION

// Appends the nodes of an activation f to the nodes of an op, and returns f(x).
std::string activated(const OnnxOp& op, const ActivationFunction& function, const std::string& x);

}  // namespace trainctl::onnx
