// The time of an op as it was lowered, on random values.
#include "core/backend/cuda/op_timer.h"

#include "core/backend/cuda/timing.h"

namespace trainctl::cuda {

double measure_op(const LowerContext& context, const Lowering& lowering) {
  std::vector<RandomBuffer> buffers;
  const auto place = [&](std::int64_t bytes, DType dtype) {
    return Address{buffers.emplace_back(bytes, dtype).get<std::byte>(), 0};
  };
  Binding binding;
  for (const Layout& layout : lowering.inputs) binding.inputs.push_back(place(layout.bytes, layout.dtype));
  for (const Layout& layout : lowering.outputs) binding.outputs.push_back(place(layout.bytes, layout.dtype));
  for (const InPlace& pair : context.op.def->in_place()) {
    binding.outputs[static_cast<std::size_t>(pair.output)] = binding.inputs[static_cast<std::size_t>(pair.input)];
  }
  binding.workspace = place(lowering.workspace_bytes, DType::float32);
  const auto kernel = lowering.bind(binding);
  CudaStream stream(std::make_shared<Waits>(), CudaStream::Priority::usual);
  return measure(stream.get(), [&] { kernel->run(stream, Slot{}); });
}

}  // namespace trainctl::cuda
