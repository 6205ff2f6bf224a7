// Engine: runs the programs of one rank on a backend.
//
// It owns the memory of all regions, binds every op once, and then runs steps without allocating. Programs of different
// batch sizes share parameters, optimizer state and arena.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/exec/batch_source.h"
#include "core/exec/collectives.h"
#include "core/exec/memory_plan.h"
#include "core/exec/snapshot.h"

namespace trainctl {

// What a step tells the host. Sums are over all ranks after a training step, over this rank after an evaluation step.
struct StepResult {
  double count = 0;  // sum of sample weights
  double loss_sum = 0;
  std::vector<double> metric_sums;  // as in the config
  double gradient_norm = 0;         // training only
  bool not_finite = false;          // a loss was NaN or Inf on some rank: the update was left out
  bool stop = false;                // some rank was asked to stop
};

// Sees every op that runs, after it ran; for profiles and for the search for NaNs. Costs a synchronisation an op.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void ran(const LoweredProgram& program, int segment, int op, double start_seconds, double end_seconds) = 0;
};

class Engine {
 public:
  // Allocates and binds everything. `communicator` joins the data axis; all ranks construct together.
  Engine(Backend& backend, Communicator& communicator, std::vector<LoweredProgram> programs);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const MemoryPlan& memory() const { return plan_; }
  const LoweredProgram& program(int index) const { return programs_[static_cast<std::size_t>(index)]; }

  // Runs a program's schedule on this rank's share of a batch (program.micro_batch_samples * micro_batches samples).
  // Evaluation programs ignore learning rate, step and stop. Waits for the end; fills `result` without allocating
  // after the first call. Throws Error{peer} when a peer is lost.
  struct StepInput {
    double learning_rate = 0;
    std::int64_t step = 0;  // from 0
    bool stop = false;      // this rank was asked to stop
  };
  void run(int program, const Batch& batch, const StepInput& input, StepResult& result);

  // Where the time of the last run went, in seconds, when timing is on; both are sums over the run's ops.
  struct Parts {
    double forward = 0, backward = 0, communication = 0, update = 0, upload = 0;
  };
  void set_timing(bool on) { timing_ = on; }
  const Parts& parts() const { return parts_; }
  // Null: none.
  void set_observer(OpObserver* observer) { observer_ = observer; }

  // A tensor's bytes as they lie on the device now (with the physical layout's padding), copied to the host.
  void read_tensor(int program, TensorId tensor, std::vector<std::byte>& bytes);

  // Parameters and running statistics, or the optimizer's state, bytewise by name: views of host memory that upload()
  // copies to the device. download() first brings the device's values.
  void download();
  void upload();
  const std::vector<NamedTensor>& weights() const { return weights_; }
  const std::vector<NamedTensor>& state() const { return state_; }

 private:
  struct Bound;

  void bind(int program);
  Address address(int program, TensorId tensor) const;
  std::byte* base(Region region) const { return regions_[static_cast<std::size_t>(region)].get(); }
  Slot slot(int index) const { return {index, base(Region::slot) + index * plan_.slot_bytes}; }
  void name_tensors();
  // Compute copies are written anew before the next program that uses them.
  void weights_changed();
  void refresh_copies(int program);
  void upload_batch(int program, const Batch& batch, int micro_batch, const Slot& slot);
  void run_segment(int program, int segment, const Slot& slot);
  void run_op(int program, int segment, int op, const Slot& slot);
  template <class T>
  void write_scalar(int program, TensorId tensor, T value);
  double read_sum(int program, TensorId tensor, int element = 0) const;
  void read_result(int program, StepResult& result);

  Backend& backend_;
  Communicator& communicator_;
  std::vector<LoweredProgram> programs_;
  MemoryPlan plan_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Stream> communication_;  // null: collectives run on the compute stream
  std::unique_ptr<CollectiveStreams> collectives_;
  std::vector<Memory> regions_;
  std::vector<std::unique_ptr<Bound>> bound_;
  std::vector<float> host_;              // parameters, statistics, states
  std::vector<std::byte> host_scalars_;  // the scalars region, written before and read after a step
  std::vector<float> host_sums_;         // the reduced tail of the gradient region
  std::vector<NamedTensor> weights_;
  std::vector<NamedTensor> state_;
  OpObserver* observer_ = nullptr;
  bool timing_ = false;
  Parts parts_;
};

}  // namespace trainctl
