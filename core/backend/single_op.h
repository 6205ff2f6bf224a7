// An op in a program of its own, with which the op is lowered separately from the program that is compiled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/program/program.h"

namespace trainctl {

struct SingleOp {
  Program program;  // holds only the op's tensors
  Op op;
  std::vector<Layout> present;  // layouts of the inputs, which are logical

  SingleOp(std::shared_ptr<const OpDef> def, const std::vector<TensorType>& inputs, const std::string& name,
           const SourceLocation& location)
      : op{std::move(def), {}, {}, name, location} {
    for (const TensorType& type : inputs) {
      op.inputs.push_back(add(type));
      present.push_back(logical_layout(type));
    }
    for (const TensorType& type : op.def->outputs(inputs)) op.outputs.push_back(add(type));
  }

 private:
  TensorId add(const TensorType& type) {
    program.tensors.push_back({.name = op.name, .type = type});
    return static_cast<TensorId>(program.tensors.size()) - 1;
  }
};

}  // namespace trainctl
