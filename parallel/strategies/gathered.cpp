// Adds the gathering of sharded parameters to a program.
#include "parallel/strategies/gathered.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "parallel/strategies/buckets.h"

namespace trainctl {
namespace {

// The gathered parameters of a bucket, in the slot.
struct Gathered {
  std::string name;  // equal on all ranks
  TensorId whole = no_tensor;
  TensorId rounded_shard = no_tensor, rounded = no_tensor;  // bfloat16, if the bucket is rounded before it is gathered
  std::map<TensorId, TensorId> members;                     // tensor in `whole`; key: the parameter
};

class Gatherer {
 public:
  Gatherer(Program program, int replicas, bool ahead, bool rounds)
      : program_(std::move(program)), replicas_(replicas), ahead_(ahead), rounds_(rounds) {
    int bucket = 0, in_bucket = 0;
    const std::vector<FlatBucket>& buckets = program_.flat.buckets;
    for (const FlatEntry& entry : program_.flat.parameters) {
      if (bucket == static_cast<int>(buckets.size())) break;
      bucket_of_[entry.parameter] = bucket;
      if (++in_bucket < buckets[static_cast<std::size_t>(bucket)].entries) continue;
      ++bucket;
      in_bucket = 0;
    }
  }

  Program run() {
    const std::set<int> of_rest = program_.segments_of_rest();
    std::map<std::pair<Phase, bool>, std::vector<Gathered>> gathered;
    for (std::size_t s = 0; s < program_.segments.size(); ++s) {
      Segment& segment = program_.segments[s];
      if (segment.phase != Phase::forward && segment.phase != Phase::backward) continue;
      const bool rest = of_rest.contains(static_cast<int>(s));
      std::vector<Gathered>& of_phase = gathered[{segment.phase, rest}];
      if (of_phase.empty()) of_phase = add_tensors(segment.phase, rest);
      gather_in(segment, of_phase);
    }
    // The parameters' tensors have no memory of their own: the forward pass uses them as the gathered tensors.
    for (const auto& [parameter, bucket] : bucket_of_) {
      program_.tensors[static_cast<std::size_t>(parameter)].role = Role::activation;
    }
    return std::move(program_);
  }

 private:
  // Adds the tensors into which a phase gathers the buckets: one set for equal micro-batches and one set for a smaller
  // last micro-batch, so that no lifetime spans another pass. The forward pass uses the parameters' own tensors.
  std::vector<Gathered> add_tensors(Phase phase, bool rest) {
    const auto phase_name = name_of(phase, Variant::first);
    const std::string suffix = format("/{}{}", phase_name, rest ? "/rest" : "");
    std::vector<Gathered> buckets;
    auto entry = program_.flat.parameters.begin();
    for (const FlatBucket& bucket : program_.flat.buckets) {
      Gathered gathered;
      gathered.name = format("bucket {}/{}", buckets.size(), phase_name);
      gathered.whole =
          program_.add(format("bucket {}{}", buckets.size(), suffix), {bucket.count}, DType::float32, Role::activation);
      if (rounds_ && !is_vector(program_.tensor(entry->parameter))) {
        const auto add = [&](const char* name, std::int64_t count) {
          return program_.add(format("bucket {}{}/{}", buckets.size(), suffix, name), {count}, DType::bfloat16,
                              Role::activation);
        };
        gathered.rounded_shard = add("rounded_part", bucket.count / replicas_);
        gathered.rounded = add("rounded", bucket.count);
      }
      std::int64_t offset = 0;
      std::vector<TensorId> members;
      for (int i = 0; i < bucket.entries; ++i, ++entry) {
        TensorId member = entry->parameter;
        if (phase != Phase::forward || rest) {
          Tensor copy = program_.tensor(member);
          copy.name += suffix;
          copy.role = Role::activation;
          program_.tensors.push_back(std::move(copy));
          member = static_cast<TensorId>(program_.tensors.size() - 1);
        }
        offset = round_up(offset, program_.flat.alignment);
        Tensor& tensor = program_.tensors[static_cast<std::size_t>(member)];
        tensor.alias_of = gathered.whole;
        tensor.alias_offset = offset;
        offset += entry->count;
        gathered.members[entry->parameter] = member;
        members.push_back(member);
      }
      program_.tensors[static_cast<std::size_t>(gathered.whole)].members = std::move(members);
      buckets.push_back(std::move(gathered));
    }
    return buckets;
  }

  // Returns the numbers of the buckets that the op reads; one layer's parameters may be in several buckets.
  std::vector<int> buckets_read_by(const Op& op) const {
    std::vector<int> found;
    for (TensorId input : op.inputs) {
      const auto bucket = bucket_of_.find(input);
      if (bucket == bucket_of_.end()) continue;
      if (std::find(found.begin(), found.end(), bucket->second) == found.end()) found.push_back(bucket->second);
    }
    return found;
  }

  // Gathers each bucket before the first op that reads it; with `ahead_`, earlier by some buckets, in parallel with the
  // ops that read the buckets before it.
  void gather_in(Segment& segment, const std::vector<Gathered>& gathered) {
    constexpr std::size_t buckets_ahead = 2;
    std::vector<int> order;  // numbers of the buckets in the order of their first use
    for (const Op& op : segment.ops) {
      for (int bucket : buckets_read_by(op)) {
        if (std::find(order.begin(), order.end(), bucket) == order.end()) order.push_back(bucket);
      }
    }
    std::vector<Op> ops;
    std::size_t begun = 0, done = 0;  // numbers of buckets of `order` with a begun and with an ended gather
    const auto begin_until = [&](std::size_t count) {
      for (; begun < std::min(count, order.size()); ++begun) begin_gather(order[begun], gathered, ops);
    };
    for (Op& op : segment.ops) {
      for (int bucket : buckets_read_by(op)) {
        const auto position = static_cast<std::size_t>(std::find(order.begin(), order.end(), bucket) - order.begin());
        if (position < done) continue;
        done = position + 1;
        begin_until(done);
        end_gather(bucket, gathered, ops);
        if (ahead_) begin_until(done + buckets_ahead);
      }
      for (TensorId& input : op.inputs) {
        const auto bucket = bucket_of_.find(input);
        if (bucket != bucket_of_.end()) input = gathered[static_cast<std::size_t>(bucket->second)].members.at(input);
      }
      ops.push_back(std::move(op));
    }
    segment.ops = std::move(ops);
  }

  // Appends the ops that begin to gather a bucket.
  void begin_gather(int bucket, const std::vector<Gathered>& gathered, std::vector<Op>& ops) const {
    std::ranges::move(ops_of(bucket, gathered).begin, std::back_inserter(ops));
  }

  // Appends the ops after which the bucket is gathered.
  void end_gather(int bucket, const std::vector<Gathered>& gathered, std::vector<Op>& ops) const {
    std::ranges::move(ops_of(bucket, gathered).end, std::back_inserter(ops));
  }

  GatherOps ops_of(int bucket, const std::vector<Gathered>& gathered) const {
    const auto number = static_cast<std::size_t>(bucket);
    const Gathered& of = gathered[number];
    return gather_ops(program_, program_.flat.buckets[number].parameter, of.rounded_shard, of.rounded, of.whole,
                      of.name, replicas_, ahead_);
  }

  Program program_;
  const int replicas_;
  const bool ahead_;                   // whether buckets are gathered in parallel with other ops
  const bool rounds_;                  // whether matrices are gathered as bfloat16
  std::map<TensorId, int> bucket_of_;  // number of the bucket; key: the parameter
};

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

// Gathers all buckets before the first forward pass (Phase::prepare), into the region of gathered parameters, where all
// passes read them. Buckets of matrices are rounded to bfloat16 before they are gathered. `overlap`: a bucket is
// rounded while the bucket before it is gathered.
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

}  // namespace

GatherOps gather_ops(const Program& program, TensorId shard, TensorId part, TensorId rounded, TensorId whole,
                     const std::string& name, int replicas, bool asynchronous) {
  GatherOps ops;
  const bool rounds = rounded != no_tensor;
  const TensorId from = rounds ? part : shard, to = rounds ? rounded : whole;
  if (rounds) ops.begin.push_back({std::make_shared<Cast>(DType::bfloat16), {shard}, {part}, name, {}});
  ops.begin.push_back({std::make_shared<AllGather>(MeshAxis::data, replicas, asynchronous), {from}, {to}, name, {}});
  if (asynchronous) ops.end.push_back(wait_for(program, to));
  if (rounds) ops.end.push_back({std::make_shared<Cast>(DType::float32), {rounded}, {whole}, name, {}});
  return ops;
}

TensorId add_parameter_shard(Program& program, std::size_t bucket) {
  const std::int64_t count = program.flat.shard_count(program.flat.buckets[bucket]);
  const TensorId shard = program.add(format("bucket {}/parameters", bucket), {count}, DType::float32, Role::parameter);
  program.tensors[static_cast<std::size_t>(shard)].placements = placed(split_along(0), {MeshAxis::data});
  return shard;
}

Program gather_parameters(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (!program.flat.shares(Quantity::parameters)) return program;
  const int replicas = rank.size(MeshAxis::data);
  std::vector<FlatBucket>& buckets = program.flat.buckets;
  const bool trains = program.find(Phase::update) >= 0;
  for (std::size_t b = 0; b < buckets.size() && !trains; ++b) buckets[b].parameter = add_parameter_shard(program, b);
  if (strategy.options.shard != Shard::parameters) return gather_once(std::move(program), replicas, strategy.overlap);
  const bool rounds = strategy.options.parameter_dtype == CommunicatedDType::bfloat16;
  return Gatherer(std::move(program), replicas, strategy.overlap, rounds).run();
}

}  // namespace trainctl
