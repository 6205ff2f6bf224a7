// Adds the gathering of parameters before the first forward pass to a program.
#include "parallel/strategies/gathered_once.h"

#include <iterator>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/gathered.h"

namespace trainctl {
namespace {

// Adds the gathering of a bucket, whose parameters follow each other in the layout from `entry` on.
GatherOps gathering_of(Program& program, std::size_t number, std::vector<FlatEntry>::const_iterator entry, int replicas,
                       bool overlap) {
  const FlatBucket bucket = program.flat.buckets[number];
  const std::string name = format("bucket {}/gathered", number);
  const TensorId whole = program.add(name, {bucket.count}, DType::float32, Role::parameter);
  std::vector<TensorId> members;
  for (int i = 0; i < bucket.entries; ++i) members.push_back((entry + i)->parameter);
  const bool rounds = !is_vector(program.tensor(members.front()));
  program.tensors[static_cast<std::size_t>(whole)].members = std::move(members);

  TensorId part = no_tensor, rounded = no_tensor;
  if (rounds) {
    part = program.add(name + "/rounded_part", {bucket.count / replicas}, DType::bfloat16, Role::activation);
    rounded = program.add(name + "/rounded", {bucket.count}, DType::bfloat16, Role::activation);
  }
  return gather_ops(program, bucket.parameter, part, rounded, whole, name, replicas, overlap);
}

}  // namespace

Program gather_once(Program program, int replicas, bool overlap) {
  std::vector<Op> ops, last_end;
  auto entry = program.flat.parameters.begin();
  for (std::size_t number = 0; number < program.flat.buckets.size(); ++number) {
    GatherOps gathering = gathering_of(program, number, entry, replicas, overlap);
    entry += program.flat.buckets[number].entries;
    std::ranges::move(gathering.begin, std::back_inserter(ops));
    std::ranges::move(last_end, std::back_inserter(ops));
    last_end = std::move(gathering.end);
  }
  std::ranges::move(last_end, std::back_inserter(ops));
  program.prepare(std::move(ops));
  return program;
}

}  // namespace trainctl
