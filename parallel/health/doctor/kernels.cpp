// Lowers and runs two ops on inputs of ones: each result is the number of summed elements.
#include "parallel/health/doctor/doctor.h"

#include "core/backend/backend.h"
#include "core/backend/choices.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/images/convolution.h"
#include "core/program/program.h"

namespace trainctl {
namespace {

// Runs an op on float32 inputs of ones, in any layout: all its results must be `expected`.
void try_op(Backend& backend, std::shared_ptr<const OpDef> def, const std::vector<Shape>& shapes, float expected) {
  Program program;
  Op op{std::move(def), {}, {}, "doctor", {}};
  std::vector<TensorType> types;
  std::vector<Layout> layouts;
  for (const Shape& shape : shapes) {
    types.push_back({shape, DType::float32});
    layouts.push_back(logical_layout(types.back()));
    op.inputs.push_back(static_cast<TensorId>(program.tensors.size()));
    program.tensors.push_back({.name = "input", .type = types.back()});
  }
  const TensorType result = op.def->outputs(types).front();
  op.outputs.push_back(static_cast<TensorId>(program.tensors.size()));
  program.tensors.push_back({.name = "output", .type = result});

  KernelChoices choices;
  const Lowering lowering = backend.lower(op, program, layouts, choices);
  const auto stream = backend.compute_stream();
  std::vector<Memory> memory;
  const auto allocate = [&](std::int64_t bytes) {
    memory.push_back(backend.allocate(bytes));
    return Address{memory.back().get(), 0};
  };
  Binding binding;
  for (const Layout& layout : lowering.inputs) {
    const std::vector<float> ones(static_cast<std::size_t>(layout.bytes) / sizeof(float), 1);
    binding.inputs.push_back(allocate(layout.bytes));
    backend.copy(binding.inputs.back().fixed, ones.data(), layout.bytes, *stream);
    stream->synchronize();
  }
  binding.outputs.push_back(allocate(lowering.outputs.front().bytes));
  binding.workspace = allocate(lowering.workspace_bytes);
  const auto kernel = lowering.bind(binding);
  kernel->run(*stream, {});
  std::vector<float> results(static_cast<std::size_t>(result.shape.count()));
  backend.copy(results.data(), binding.outputs.front().fixed, result.bytes(), *stream);
  stream->synchronize();
  for (const float value : results) {
    if (value == expected) continue;
    throw Error(ErrorKind::resource,
                format("{} on {} returns {} instead of {} ({})", op.def->kind(), backend.name(), value, expected,
                       lowering.implementation),
                "check nvidia-smi -q and dmesg for errors of the GPU, and the versions of CUDA's libraries");
  }
}

}  // namespace

void try_kernels(Backend& backend) {
  try_op(backend, std::make_shared<Dense>(), {{16, 32}, {32, 16}}, 32);
  try_op(backend, std::make_shared<Conv2d>(Window{.size = {3, 3}}, 1), {{2, 8, 8, 16}, {3, 3, 16, 16}}, 144);
}

}  // namespace trainctl
