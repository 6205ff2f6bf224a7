// Compiles programs with a backend's kernels, or with assumed kernels.
#include "core/compile/compile.h"

#include "core/compile/lower.h"

namespace trainctl {
namespace {

class BackendKernels final : public Kernels {
 public:
  BackendKernels(Backend& backend, KernelChoices& choices) : backend_(backend), choices_(choices) {}
  void prepare(const Program& program) override { backend_.prepare(program, choices_); }
  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs) override {
    return backend_.lower(op, program, inputs, choices_);
  }
  bool updates_copies() const override { return backend_.updates_copies(); }
  bool adds_gradients() const override { return backend_.adds_gradients(); }
  bool on_host() const override { return backend_.on_host(); }

 private:
  Backend& backend_;
  KernelChoices& choices_;
};

class AssumedKernels final : public Kernels {
 public:
  explicit AssumedKernels(bool on_host) : on_host_(on_host) {}
  void prepare(const Program&) override {}
  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs) override {
    Lowering lowering;
    const TensorType& data = program.tensor(op.inputs.empty() ? op.outputs[0] : op.inputs[0]).type;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Tensor& tensor = program.tensor(op.inputs[i]);
      const bool kernel =
          tensor.role == Role::parameter && tensor.type.shape.rank() > 1 && data.dtype != DType::float32;
      lowering.inputs.push_back(kernel ? logical_layout({tensor.type.shape, data.dtype}) : inputs[i]);
    }
    for (TensorId id : op.outputs) lowering.outputs.push_back(logical_layout(program.tensor(id).type));
    lowering.implementation = "assumed";
    return lowering;
  }
  bool updates_copies() const override { return false; }
  bool adds_gradients() const override { return true; }
  bool on_host() const override { return on_host_; }

 private:
  bool on_host_;
};

Compiled compile_by(const std::vector<Program>& programs, Kernels& kernels, const DeviceTraits& device) {
  Compiled compiled;
  for (const Program& program : programs) compiled.programs.push_back(lower(program, kernels));
  compiled.memory = place_tensors(compiled.programs, device);
  return compiled;
}

}  // namespace

Compiled compile(const std::vector<Program>& programs, Backend& backend, KernelChoices& choices) {
  BackendKernels kernels(backend, choices);
  return compile_by(programs, kernels, traits_of(backend));
}

Compiled compile_without_kernels(const std::vector<Program>& programs, const DeviceTraits& device) {
  AssumedKernels kernels(device.on_host);
  return compile_by(programs, kernels, device);
}

}  // namespace trainctl
