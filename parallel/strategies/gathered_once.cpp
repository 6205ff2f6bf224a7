// Adds the gathering of parameters before the first forward pass to a program.
#include "parallel/strategies/gathered_once.h"

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/gathered.h"

namespace trainctl {
namespace {

// The ops that begin to gather a bucket, and those after which it is gathered.
struct Gathering {
  std::vector<Op> begin, end;
};

// Adds the gathering of a bucket, whose parameters follow each other in the layout from `entry` on.
Gathering gathering_of(Program& program, std::size_t number, std::vector<FlatEntry>::const_iterator entry, int replicas,
                       bool overlap) {
  const FlatBucket bucket = program.flat.buckets[number];
  const std::string name = format("bucket {}/gathered", number);
  const TensorId whole = program.add(name, {bucket.count}, DType::float32, Role::parameter);
  std::vector<TensorId> members;
  for (int i = 0; i < bucket.entries; ++i) members.push_back((entry + i)->parameter);
  const bool rounds = !is_vector(program.tensor(members.front()));
  program.tensors[static_cast<std::size_t>(whole)].members = std::move(members);

  Gathering gathering;
  TensorId shard = bucket.parameter, gathered = whole;
  if (rounds) {
    shard = program.add(name + "/rounded_part", {bucket.count / replicas}, DType::bfloat16, Role::activation);
    gathered = program.add(name + "/rounded", {bucket.count}, DType::bfloat16, Role::activation);
    gathering.begin.push_back({std::make_shared<Cast>(DType::bfloat16), {bucket.parameter}, {shard}, name, {}});
  }
  gathering.begin.push_back(
      {std::make_shared<AllGather>(MeshAxis::data, replicas, overlap), {shard}, {gathered}, name, {}});
  if (overlap) gathering.end.push_back(wait_for(program, gathered));
  if (rounds) gathering.end.push_back({std::make_shared<Cast>(DType::float32), {gathered}, {whole}, name, {}});
  return gathering;
}

}  // namespace

Program gather_once(Program program, int replicas, bool overlap) {
  std::vector<Op> ops, last_end;
  auto entry = program.flat.parameters.begin();
  for (std::size_t number = 0; number < program.flat.buckets.size(); ++number) {
    Gathering gathering = gathering_of(program, number, entry, replicas, overlap);
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
