// Joins ops that follow each other.
#include "core/compile/joined_ops.h"

#include <optional>
#include <utility>

namespace trainctl {

std::vector<Op> join_ops(std::vector<Op> ops) {
  std::vector<Op> kept;
  for (Op& op : ops) {
    const bool reads_last = !kept.empty() && kept.back().outputs.size() == 1 && !op.inputs.empty() &&
                            op.inputs[0] == kept.back().outputs[0];
    std::optional<Op> joined = reads_last ? op.def->joined_with(op, kept.back()) : std::nullopt;
    if (joined) {
      kept.back() = std::move(*joined);
    } else {
      kept.push_back(std::move(op));
    }
  }
  return kept;
}

}  // namespace trainctl
