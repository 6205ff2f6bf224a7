// Records when every op ran, for `bench ops` and for timelines.
#pragma once

#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

struct OpRun {
  const PlacedProgram* program = nullptr;
  int segment = 0;
  int op = 0;
  double start_seconds = 0;
  double end_seconds = 0;

  const PlacedOp& placed() const { return program->op(segment, op); }
  const Op& what() const { return placed().op; }
  const Lowering& how() const { return placed().lowering; }
};

// A span of time outside ops: waiting for data, evaluation, a checkpoint.
struct Mark {
  const char* name = "";
  double start_seconds = 0;
  double end_seconds = 0;
};

class OpRecorder final : public OpObserver {
 public:
  void ran(const PlacedProgram& program, int segment, int op, int, double start_seconds, double end_seconds) override {
    runs_.push_back({&program, segment, op, start_seconds, end_seconds});
  }
  void mark(const Mark& mark) { marks_.push_back(mark); }
  const std::vector<OpRun>& runs() const { return runs_; }
  const std::vector<Mark>& marks() const { return marks_; }

 private:
  std::vector<OpRun> runs_;
  std::vector<Mark> marks_;
};

// The cost of one op of a step, measured over several steps.
struct OpCost {
  OpRun op;
  double median_seconds = 0;
  OpWork work;        // work of one run
  double spread = 0;  // the middle half of the runs' times: the difference of its ends, as a fraction of the median
};

// The costs of the ops in the order of the first step. Each cost is the median over the steps.
std::vector<OpCost> op_costs(const std::vector<OpRun>& runs);

}  // namespace trainctl
