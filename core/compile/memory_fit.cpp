// Checks whether a run fits into a device's memory.
#include "core/compile/memory_fit.h"

#include <string>
#include <vector>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

std::string regions_text(const MemoryPlan& plan) {
  std::string text;
  for (const MemoryLine& line : plan.lines()) {
    if (line.bytes < plan.total() / 100) continue;
    text += format("{}{} {}", text.empty() ? "" : ", ", line.name, byte_text(line.bytes));
  }
  return text;
}

std::string advice(const MemoryPlan& plan, std::int64_t free, const BatchCut& cut) {
  const std::int64_t arena = plan.of(Region::slot), batches = plan.on_host ? plan.prefetched : 0;
  const std::int64_t fixed = plan.total() - arena - batches;
  const std::int64_t unstaged = plan.total() - (plan.on_host ? plan.staged : 0);
  std::string text;
  if (unstaged <= free) text = format("checkpoint.background: false would need {}; or ", byte_text(unstaged));
  if (fixed >= free) return text + "use a smaller network, or a device with more memory";
  for (std::int64_t factor = 2; cut.samples / cut.gradient_accumulation / factor >= 1; ++factor) {
    const bool divides = cut.samples % (cut.gradient_accumulation * factor) == 0;
    const std::int64_t needed = fixed + batches + divide_up(arena, factor);
    if (!divides || needed > free) continue;
    text += format("train.gradient_accumulation: {} would need about {}; or ", cut.gradient_accumulation * factor,
                   byte_text(needed));
    break;
  }
  if (batches > arena) text += "a smaller data.prefetch; or ";
  // The largest share of the present batch such that its arena and prefetched batches fit.
  const double share = static_cast<double>(free - fixed) / static_cast<double>(checked_add(arena, batches));
  const auto batch = static_cast<std::int64_t>(share * static_cast<double>(cut.batch_size));
  if (batch < 1) return text + "use a smaller network, or a device with more memory";
  return text + format("a batch of about {} would fit", counted(batch, "sample"));
}

}  // namespace

void require_fit(const MemoryPlan& plan, const MemoryLimit& limit, const BatchCut& cut, Need need) {
  const bool known = limit.bytes > 0;
  const std::int64_t allowed = known ? limit.bytes : max_memory;
  if (plan.total() <= allowed) return;
  const std::string limit_text = !known        ? "no machine has more than " + byte_text(allowed)
                                 : limit.given ? "cluster.memory is " + byte_text(allowed)
                                               : byte_text(allowed) + " are free";
  throw Error(ErrorKind::resource,
              format("a rank of this run needs {}{} of memory ({}), but {}", need == Need::least ? "at least " : "",
                     byte_text(plan.total()), regions_text(plan), limit_text),
              advice(plan, allowed, cut));
}

}  // namespace trainctl
