// Replaces identities of parameters by the parameters.
#include "parallel/strategies/table.h"

#include <map>
#include <vector>

#include "core/graph/ops/collectives.h"

namespace trainctl {

Program read_shared_parameters(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (rank.size(MeshAxis::tensor) == 1 || !strategy.options.sequence_parallel) return program;
  std::map<TensorId, TensorId> parameter_of;  // key: the output of an identity
  for (Segment& segment : program.segments) {
    std::erase_if(segment.ops, [&](const Op& op) {
      const bool is_identity = op.get_if<Identity>() != nullptr;
      if (!is_identity || program.tensor(op.inputs[0]).role != Role::parameter) return false;
      parameter_of[op.outputs[0]] = op.inputs[0];
      return true;
    });
    for (Op& op : segment.ops) {
      for (TensorId& input : op.inputs) {
        if (const auto found = parameter_of.find(input); found != parameter_of.end()) input = found->second;
      }
    }
  }
  return program;
}

}  // namespace trainctl
