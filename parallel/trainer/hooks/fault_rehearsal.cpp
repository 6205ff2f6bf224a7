// Decides with all ranks that a fault happens, and lets it happen.
#include "parallel/trainer/hooks/fault_rehearsal.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/exec/engine.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/comm/text.h"
#include "parallel/health/faults/spoiled_batches.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

FaultRehearsal::FaultRehearsal(Parts parts) : parts_(std::move(parts)) {
  find_pending();
  JointAttempt attempt(parts_.world, parts_.stream);
  attempt.run([&] {
    std::string problems;
    for (const Pending& pending : pending_) {
      std::string why = pending.options().why_impossible(*this);
      if (why.empty()) why = why_too_late(pending.options(), parts_.steps);
      if (why.empty()) continue;
      problems += (problems.empty() ? "" : "\n") + to_string(Diagnostic{pending.fault.location, why, {}, ""});
    }
    if (!problems.empty()) throw Error(ErrorKind::config, problems);
  });
  attempt.throw_if_any_failed();
}

// Rank 0 tells the others which faults are marked, one character for each fault.
void FaultRehearsal::find_pending() {
  const FaultList& faults = parts_.faults;
  std::string marked;
  for (std::size_t i = 0; i < faults.size() && rank() == 0; ++i) {
    marked += is_marked(parts_.run_directory, i + 1, faults[i]) ? '+' : '-';
  }
  marked = broadcast_text(marked, 0, parts_.world, parts_.stream);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (marked[i] == '-') pending_.push_back({i + 1, faults[i]});
  }
}

std::int64_t FaultRehearsal::next_pause(std::int64_t step) const {
  if (slow_steps_ > 0) return step + 1;
  std::int64_t next = never;
  for (const Pending& pending : pending_) {
    const std::int64_t after = pending.options().acts_after();
    if (after > step) next = std::min(next, after);
  }
  return next;
}

void FaultRehearsal::on_pause(const TrainingState& state, std::int64_t before) {
  if (slow_steps_ > 0) {
    slow_steps_ -= state.step - before;
    std::this_thread::sleep_for(std::chrono::duration<double>(delay_));
    if (parts_.waited) parts_.waited(delay_);
  }
  for (const Pending& pending : pending_) {
    const std::int64_t after = pending.options().acts_after();
    if (before < after && after <= state.step && happens(pending)) pending.options().act(*this);
  }
}

// Rank 0 decides by its mark, which it writes before the fault can end a rank.
bool FaultRehearsal::happens(const Pending& pending) {
  const bool is_new = rank() == 0 && mark_fault(parts_.run_directory, pending.number, pending.fault);
  if (is_new) {
    const FaultOptions& options = pending.options();
    log::warning(format("rehearsed fault: {}, after {}", options.text(), counted(options.acts_after(), "step")));
  }
  return any_rank(is_new, parts_.world, parts_.stream);
}

int FaultRehearsal::rank() const { return parts_.world.rank(); }

void FaultRehearsal::delay_steps(std::int64_t steps, double seconds) {
  slow_steps_ = steps;
  delay_ = seconds;
}

void FaultRehearsal::spoil_next_batch(int rank) {
  if (parts_.mesh.position(this->rank()).data == parts_.mesh.position(rank).data) parts_.batches.spoil_next();
}

// Flips the highest bit of the mantissa of the middle element of the largest tensor. With moving averages, training
// goes on from tensors of the state.
void FaultRehearsal::flip_bit() {
  constexpr std::uint32_t bit = 1U << 22;
  Engine& engine = parts_.engine;
  engine.download();
  std::vector<NamedTensor> tensors = engine.weights();
  for (const NamedTensor& tensor : engine.state()) {
    if (tensor.name.starts_with("latest/")) tensors.push_back(tensor);
  }
  const auto smaller = [](const NamedTensor& a, const NamedTensor& b) {
    const auto order = [](const NamedTensor& t) { return std::pair(t.name.starts_with("latest/"), t.view.count); };
    return order(a) < order(b);
  };
  const View& view = std::max_element(tensors.begin(), tensors.end(), smaller)->view;
  view.as<std::uint32_t>()[view.count / 2] ^= bit;
  engine.upload();
}

}  // namespace trainctl
