// Times lowered ops on random values, and chooses between lowerings by their times.
#include "core/backend/cuda/choice/op_timer.h"

#include <algorithm>

#include "core/backend/cuda/choice/timing.h"
#include "core/backend/cuda/choice/timings.h"

namespace trainctl::cuda {

double measure_op(const LowerContext& context, const Lowering& lowering) {
  std::vector<RandomBuffer> buffers;
  const auto random_buffer = [&](std::int64_t bytes, DType dtype) {
    return Address{buffers.emplace_back(bytes, dtype).get<std::byte>(), 0};
  };
  Binding binding;
  for (const Layout& layout : lowering.inputs) binding.inputs.push_back(random_buffer(layout.bytes, layout.dtype));
  for (const Layout& layout : lowering.outputs) binding.outputs.push_back(random_buffer(layout.bytes, layout.dtype));
  for (const InPlace& pair : context.op.def->in_place()) {
    const auto input = static_cast<std::size_t>(pair.input), output = static_cast<std::size_t>(pair.output);
    if (lowering.inputs[input].bytes == lowering.outputs[output].bytes) binding.outputs[output] = binding.inputs[input];
  }
  binding.workspace = random_buffer(lowering.workspace_bytes, DType::float32);
  const auto kernel = lowering.bind(binding);
  CudaStream stream(std::make_shared<Waits>(), CudaStream::Priority::usual);
  return measure(stream.get(), [&] { kernel->run(stream, Slot{}); });
}

std::size_t choose(const LowerContext& context, const std::string& key, const std::string& what,
                   std::span<const std::string> candidates, const std::function<double(std::size_t)>& seconds) {
  if (const auto recorded = context.choices.find(key)) {
    const auto known = std::find(candidates.begin(), candidates.end(), *recorded);
    if (known != candidates.end()) return static_cast<std::size_t>(known - candidates.begin());
  }
  const bool wanted = context.device.options().timing;
  if (wanted && !context.choices.may_time(key)) {
    context.choices.assume(key);
    return 0;
  }
  std::size_t chosen = 0;
  if (wanted) {
    Timings timings(what);
    for (std::size_t i = 0; i < candidates.size(); ++i) timings.add(candidates[i], [&] { return seconds(i); });
    chosen = timings.fastest();
  }
  context.choices.record(key, candidates[chosen]);
  return chosen;
}

}  // namespace trainctl::cuda
