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
  DType dtype = DType::float32;  // of activations
  bool fused = false;            // after the fusion pass
  bool accumulate = false;       // gradients of parameters are added to `before`
};

// A case as a graph for inputs of given types, differentiated.
class CaseRun {
 public:
  // `choices` are added to; they and the backend outlive the run.
  CaseRun(const OpCase& which, const CaseMode& mode, const std::vector<Value>& inputs, Backend& backend,
          KernelChoices& choices);

  // The outputs for these inputs, as the case lists them.
  std::vector<Value> forward(const std::vector<Value>& inputs);
  // The gradients by the inputs of the last forward(), given that by the first output; no values for constants.
  // Parameters' gradients hold `before` already.
  std::vector<Value> backward(const Value& output_gradient, double before = 0);

 private:
  // Runs ops in order; tensors live in values_.
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

// The input's dtype under a mode, by its letter in OpCase::inputs.
DType dtype_of(char letter, const Value& golden, DType computed);

}  // namespace trainctl::test
