// Creates the ops that sum a bucket over the data axis as bfloat16 (`gradient_dtype: bfloat16`;
// core/graph/ops/training/rounded_sum.h).
#pragma once

#include <vector>

#include "core/program/program.h"

namespace trainctl {

// The sum of one bucket. begin() rounds the bucket and sends to each rank the summands of that rank's shard; the ops of
// the other functions follow in order. If collectives overlap with other ops, each function first waits for the
// previous collective.
class RoundedSum {
 public:
  // Adds the temporary tensors to the program. `whole`: the bucket, whose size must be known.
  RoundedSum(Program& program, TensorId whole, int ranks, bool asynchronous);

  std::vector<Op> begin() const;
  // Adds the summands of this rank's shard, in float32.
  std::vector<Op> add_into(TensorId shard) const;
  // Adds the summands, rounds the sums and gathers them.
  std::vector<Op> gather() const;
  // Writes the gathered sums to the bucket.
  std::vector<Op> end() const;

 private:
  Op op(std::shared_ptr<const OpDef> def, TensorId input, TensorId output) const;
  void wait_for(TensorId tensor, std::vector<Op>& ops) const;

  std::string name_;  // name of the bucket
  TensorId whole_, summands_, received_, sum_, gathered_;
  std::int64_t count_;
  int ranks_;
  bool asynchronous_;
};

}  // namespace trainctl
