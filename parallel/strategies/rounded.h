// Gradients that travel as bfloat16 (`gradient_dtype: bfloat16`): the ops that sum a bucket over the data axis in that
// way (core/graph/ops/training/rounded_sum.h).
#pragma once

#include <vector>

#include "core/program/program.h"

namespace trainctl {

// The sum of one bucket. begin() rounds the bucket and sends each rank the summands of its part; the further functions
// follow in their order. Where collectives run beside other ops, each waits for the one before.
class RoundedSum {
 public:
  // Adds the tensors in between to the program. `whole`: the bucket, whose size is known.
  RoundedSum(Program& program, TensorId whole, int ranks, bool asynchronous);

  std::vector<Op> begin() const;
  // Adds the summands of this rank's part, in float32.
  std::vector<Op> add_into(TensorId part) const;
  // Adds them, and gathers the sums, rounded once more.
  std::vector<Op> gather() const;
  // Writes the gathered sums to the bucket.
  std::vector<Op> end() const;

 private:
  Op op(std::shared_ptr<const OpDef> def, TensorId input, TensorId output) const;
  void wait_for(TensorId tensor, std::vector<Op>& ops) const;

  std::string name_;  // of the bucket
  TensorId whole_, summands_, received_, part_, gathered_;
  std::int64_t count_;
  int ranks_;
  bool asynchronous_;
};

}  // namespace trainctl
