// The table of kernels: op kind -> lowering.
#include "core/backend/cpu/kernels.h"

#include <algorithm>
#include <iterator>

#include "core/backend/cpu/ops/elementwise/row_group.h"

namespace trainctl::cpu {
namespace {

struct Entry {
  std::string_view kind;
  LowerFunction lower;
};

#define TRAINCTL_ENTRY(kind) Entry{#kind, lower_##kind},
constexpr Entry table[] = {TRAINCTL_KERNEL_OPS(TRAINCTL_ENTRY) Entry{"row_group", lower_row_group}};
#undef TRAINCTL_ENTRY

}  // namespace

LowerFunction find_lowering(std::string_view kind) {
  const auto* const entry = std::ranges::find(table, kind, &Entry::kind);
  return entry == std::end(table) ? nullptr : entry->lower;
}

}  // namespace trainctl::cpu
