// Times this project's kernels, and chooses between them and oneDNN's implementations.
#include "core/backend/cpu/ops/images/own_kernel.h"

#include <algorithm>

#include "core/backend/cpu/onednn/dnnl_kernel.h"

namespace trainctl::cpu {

double measure_own(const LowerContext& context, std::int64_t workspace_bytes, double best_so_far,
                   const std::function<void(const void*, const void*, void*, void*)>& call) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const auto lines = [](std::int64_t bytes) { return std::vector<Line>(static_cast<std::size_t>(bytes / 64 + 1)); };
  const auto values = [](const TensorType& type) { return random_bytes(type.bytes(), type.dtype); };
  const std::vector<std::byte> first = values(context.input(0)), second = values(context.input(1));
  std::vector<Line> output = lines(context.output(0).bytes()), workspace = lines(workspace_bytes);
  return best_seconds([&] { call(first.data(), second.data(), output.data(), workspace.data()); }, best_so_far);
}

const OwnKernel* find_own(const std::vector<OwnKernel>& own, const std::optional<std::string>& implementation) {
  const auto found = std::ranges::find_if(own, [&](const OwnKernel& k) { return k.implementation == implementation; });
  return found == own.end() ? nullptr : &*found;
}

const OwnKernel* choose_own(const LowerContext& context, const std::vector<OwnKernel>& own,
                            const OneDnnKernel& onednn) {
  const std::string key = context.key();
  const OwnKernel* chosen = nullptr;
  if (onednn.seconds > 0) {
    double fastest = onednn.seconds;
    for (const OwnKernel& kernel : own) {
      const double seconds = kernel.seconds(fastest);
      if (seconds >= fastest) continue;
      fastest = seconds;
      chosen = &kernel;
    }
    if (chosen != nullptr) context.choices.record(key, chosen->implementation);
  } else if (!uses_amx(onednn.implementation)) {
    const auto found = std::ranges::find_if(own, &OwnKernel::by_rule);
    if (found != own.end()) chosen = &*found;
    if (chosen != nullptr) context.settle(key, chosen->implementation);
  }
  return chosen;
}

}  // namespace trainctl::cpu
