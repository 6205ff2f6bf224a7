// Runs an op case on a backend: forward, and the backward ops that core/graph derives.
#pragma once

#include <map>
#include <vector>

#include "core/backend/choices.h"
#include "core/graph/passes/differentiate.h"
#include "test/core/ops/golden.h"
#include "test/core/ops/op_cases.h"

namespace trainctl::test {

struct CaseMode {
  DType dtype = DType::float32;  // dtype of activations
  bool fused = false;            // whether the fusion pass runs
  bool accumulate = false;       // gradients of parameters are added to `before`
};

// The graph of a case for inputs of given types, with its backward ops.
class CaseRun {
 public:
  // Adds to `choices`; they and the backend must outlive the run.
  CaseRun(const OpCase& which, const CaseMode& mode, const std::vector<Value>& inputs, Backend& backend,
          KernelChoices& choices);

  // Returns the case's outputs for these inputs.
  std::vector<Value> forward(const std::vector<Value>& inputs);
  // Returns the gradients of the inputs of the last forward(), given the gradient of the first output; those of
  // constants have no values. Parameters' gradients have the value `before` at the start.
  std::vector<Value> backward(const Value& output_gradient, double before = 0);

 private:
  // Runs ops in order; values_ has the tensors.
  void run(const std::vector<Op>& ops, double before);
  std::vector<Value> run(const std::shared_ptr<const OpDef>& def, const std::vector<Value>& inputs,
                         const std::vector<Value>& initial);

  Backend& backend_;
  KernelChoices& choices_;
  Graph graph_;
  Backward backward_;
  std::vector<TensorId> inputs_, outputs_, gradients_;
  TensorId output_gradient_ = no_tensor;
  std::map<TensorId, Value> values_;
};

// Returns an input's dtype by its letter in OpCase::inputs.
DType dtype_of(char letter, const Value& golden, DType computed);

}  // namespace trainctl::test
