// Whether a run fits into a device's memory.
#include "cmd/memory_fit.h"

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

std::string parts_of(const MemoryPlan& plan) {
  std::string text;
  for (int region = 0; region < region_count; ++region) {
    const std::int64_t bytes = plan.bytes[static_cast<std::size_t>(region)];
    if (bytes < plan.total() / 100) continue;
    text += format("{}{} {}", text.empty() ? "" : ", ", name_of(static_cast<Region>(region)), byte_text(bytes));
  }
  return text;
}

std::string advice(const MemoryPlan& plan, std::int64_t free, const BatchCut& cut) {
  const std::int64_t arena = plan.of(Region::slot), fixed = plan.total() - arena;
  if (fixed >= free) return "use a smaller network, or a device with more memory";
  // Of the arena that is there now, the largest share that fits.
  const double share = static_cast<double>(free - fixed) / static_cast<double>(arena);
  std::string text;
  for (std::int64_t more = 2; cut.samples / cut.gradient_accumulation / more >= 1; ++more) {
    const bool divides = cut.samples % (cut.gradient_accumulation * more) == 0;
    if (!divides || 1.0 / static_cast<double>(more) > share) continue;
    text = format("train.gradient_accumulation: {} would need about {}; or ", cut.gradient_accumulation * more,
                  byte_text(fixed + arena / more));
    break;
  }
  const auto batch = static_cast<std::int64_t>(share * static_cast<double>(cut.batch_size));
  if (batch < 1) return text + "use a smaller network, or a device with more memory";
  return text + format("a batch of about {} samples would fit", batch);
}

}  // namespace

void require_fit(const MemoryPlan& plan, std::int64_t free, const BatchCut& cut, Need need) {
  const bool known = free > 0;
  if (!known) free = most_memory;
  if (plan.total() <= free) return;
  const std::string limit =
      known ? byte_text(free) + " are free" : "no machine has more than " + byte_text(most_memory);
  throw Error(ErrorKind::resource,
              format("a rank of this run needs {}{} of memory ({}), and {}", need == Need::least ? "at least " : "",
                     byte_text(plan.total()), parts_of(plan), limit),
              advice(plan, free, cut));
}

}  // namespace trainctl
