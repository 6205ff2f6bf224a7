// Creates the ops that sum a bucket as bfloat16.
#include "parallel/strategies/rounded.h"

#include <utility>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/training/rounded_sum.h"

namespace trainctl {
namespace {

constexpr DType half = DType::bfloat16;

}  // namespace

RoundedSum::RoundedSum(Program& program, TensorId whole, int ranks, bool asynchronous)
    : name_(program.tensor(whole).name),
      whole_(whole),
      count_(program.tensor(whole).type.shape.count()),
      ranks_(ranks),
      asynchronous_(asynchronous) {
  const std::int64_t padded = round_up(count_, ranks);
  summands_ = program.add(name_ + "/summands", {padded}, half, Role::activation);
  received_ = program.add(name_ + "/received", {padded}, half, Role::activation);
  sum_ = program.add(name_ + "/sum", {padded / ranks}, half, Role::activation);
  gathered_ = program.add(name_ + "/gathered", {padded}, half, Role::activation);
}

std::vector<Op> RoundedSum::begin() const {
  return {op(std::make_shared<RoundSummands>(MeshAxis::data, ranks_), whole_, summands_),
          op(std::make_shared<AllToAll>(MeshAxis::data, ranks_, asynchronous_), summands_, received_)};
}

std::vector<Op> RoundedSum::add_into(TensorId shard) const {
  std::vector<Op> ops;
  wait_for(received_, ops);
  ops.push_back(op(std::make_shared<AddSummands>(MeshAxis::data, ranks_, DType::float32), received_, shard));
  return ops;
}

std::vector<Op> RoundedSum::gather() const {
  std::vector<Op> ops;
  wait_for(received_, ops);
  ops.push_back(op(std::make_shared<AddSummands>(MeshAxis::data, ranks_, half), received_, sum_));
  ops.push_back(op(std::make_shared<AllGather>(MeshAxis::data, ranks_, asynchronous_), sum_, gathered_));
  return ops;
}

std::vector<Op> RoundedSum::end() const {
  std::vector<Op> ops;
  wait_for(gathered_, ops);
  ops.push_back(op(std::make_shared<WidenSums>(MeshAxis::data, ranks_, count_), gathered_, whole_));
  return ops;
}

Op RoundedSum::op(std::shared_ptr<const OpDef> def, TensorId input, TensorId output) const {
  return {std::move(def), {input}, {output}, name_, {}};
}

void RoundedSum::wait_for(TensorId tensor, std::vector<Op>& ops) const {
  if (asynchronous_) ops.push_back(op(std::make_shared<Wait>(), tensor, tensor));
}

}  // namespace trainctl
