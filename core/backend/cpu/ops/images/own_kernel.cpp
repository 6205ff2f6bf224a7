// Times this project's kernels, and chooses between them and oneDNN's implementations.
#include "core/backend/cpu/ops/images/own_kernel.h"

#include "core/backend/cpu/onednn/dnnl_kernel.h"

namespace trainctl::cpu {

double measure_own(const LowerContext& context, std::int64_t workspace_bytes, double best_so_far,
                   const std::function<void(const void*, const void*, float*, void*)>& call) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const auto lines = [](std::int64_t bytes) { return std::vector<Line>(static_cast<std::size_t>(bytes / 64 + 1)); };
  const auto values = [](const TensorType& type) { return random_bytes(type.bytes(), type.dtype); };
  const std::vector<std::byte> first = values(context.input(0)), second = values(context.input(1));
  std::vector<Line> output = lines(context.output(0).bytes()), workspace = lines(workspace_bytes);
  auto* const result = reinterpret_cast<float*>(output.data());
  return best_seconds([&] { call(first.data(), second.data(), result, workspace.data()); }, best_so_far);
}

bool takes_own(const LowerContext& context, const OwnKernel& own, double seconds) {
  const std::string key = context.key();
  if (seconds > 0) {
    if (own.seconds(seconds) >= seconds) return false;
    context.choices.record(key, own.implementation);
    return true;
  }
  if (own.by_rule) context.settle(key, own.implementation);
  return own.by_rule;
}

}  // namespace trainctl::cpu
