// The table of CUDA kernels: op kind -> lowering.
#include "core/backend/cuda/kernels.h"

#include <algorithm>
#include <iterator>

namespace trainctl::cuda {
namespace {

struct Entry {
  std::string_view kind;
  LowerFunction lower;
};

#define TRAINCTL_ENTRY(kind) Entry{#kind, lower_##kind},
constexpr Entry table[] = {TRAINCTL_KERNEL_OPS(TRAINCTL_ENTRY) TRAINCTL_CUDA_OPS(TRAINCTL_ENTRY)};
#undef TRAINCTL_ENTRY

}  // namespace

LowerFunction find_lowering(std::string_view kind) {
  const auto* const entry = std::ranges::find(table, kind, &Entry::kind);
  return entry == std::end(table) ? nullptr : entry->lower;
}

}  // namespace trainctl::cuda
