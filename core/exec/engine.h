// Engine: runs the programs of one rank on a backend.
//
// It owns the memory of all regions, binds every op once, and then runs steps without allocating. Programs of different
// batch sizes share parameters, optimizer state and arena. On a device that computes in parallel to the host, the next
// step is queued and its batch copied while a step runs; for this there are buffers for two steps, in page-locked
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/compile/compile.h"
#include "core/exec/collectives.h"
#include "core/exec/fresh_copies.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/exec/interfaces/step_engine.h"
#include "core/exec/step_work.h"

namespace trainctl {

class Engine final : public StepEngine {
 public:
  // Allocates all memory and binds all ops; throws the errors of the backend and the communicators. All ranks of the
  // communicators must construct their engines together.
  Engine(Backend& backend, const MeshCommunicators& communicators, Compiled compiled);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Backend& backend() const { return backend_; }
  const MemoryPlan& memory() const { return plan_; }
  const PlacedProgram& program(int index) const { return programs_[static_cast<std::size_t>(index)]; }

  // Queues a program's schedule on this rank's share of a batch (program.samples() samples). The batch's memory must
  // stay valid until the step is finished. On asynchronous devices, it must stay valid only until start() returns. At
  // most steps_at_once() steps may be under way.
  void start(int program, const Batch& batch, const StepInput& input) override;
  // Waits for the oldest step under way; fills `result`, without allocating after the first call. When a peer is lost,
  // throws Error{peer} that names the op that the device had reached.
  void finish(StepResult& result) override;
  int under_way() const { return under_way_; }
  // The largest number of steps that may be under way: two if the device computes in parallel to the host and no
  // observer is set, else one.
  int steps_at_once() const override { return backend_.asynchronous() && observer_ == nullptr ? 2 : 1; }
  // Calls start() and finish(); no other step may be under way.
  void run(int program, const Batch& batch, const StepInput& input, StepResult& result);
  // Runs a step again with the same batch and scalars: the step that was finished last (`back` = 0), or the one before
  // it if two may be under way (`back` = 1). No step may be under way.
  void repeat(int back, StepResult& result);

  void set_timing(bool on) override { timing_ = on; }
  const Phases& phases() const override { return phases_; }
  // Sets the observer of all further steps, which then run op by op; null: none.
  void set_observer(OpObserver* observer) override { observer_ = observer; }

  // Copies a tensor's bytes from the device to the host, in the physical layout with its padding. An activation is read
  // from slot `from_slot`.
  void read_tensor(int program, TensorId tensor, std::vector<std::byte>& bytes, int from_slot = 0);

  // Parameters and running statistics, or the optimizer's state, bytewise by name: views of host memory. download()
  // fills that memory from the device; upload() copies it to the device. If the device's memory is the host's, the
  // views are the values with which steps compute: no second copy of them exists. With moving averages, the averages
  // are the weights, and the state contains the parameters from which training continues, such as
  // "latest/conv1/kernel". begin_at_weights() sets these parameters to the weights, in the host's memory.
  void download() override;
  void upload();
  void begin_at_weights();
  const std::vector<NamedTensor>& weights() const override { return weights_; }
  const std::vector<NamedTensor>& state() const override { return state_; }
  Memory allocate_host(std::int64_t bytes) override;
  void copy(std::span<const NamedTensor> tensors, std::byte* to) override;

 private:
  struct Bound;
  struct StepBuffers;

  void bind(int program);
  std::unique_ptr<Kernel> bind_op(int program, const PlacedOp& op);
  std::vector<StepUnit> bind_segment(int program, int segment, Bound& bound);
  void bind_batch(int program, const ScheduleItem& item, Bound& bound);
  void clear_caches();
  void make_step_buffers();
  Address address(int program, TensorId tensor) const;
  std::byte* base(Region region) const { return regions_[static_cast<std::size_t>(region)].get(); }
  Slot slot(int index) const { return {index, base(Region::slot) + index * plan_.slot_bytes}; }
  void name_tensors();
  void refresh_copies(int program);
  void stage_batch(StepBuffers& buffers, const Batch& batch);
  void queue(int buffer);
  void enter_wait();
  std::vector<CopyRange> results_of(int program, const StepBuffers& buffers) const;
  template <class T>
  void write_scalar(StepBuffers& buffers, int program, TensorId tensor, T value);
  float* kept(Region region);
  const std::byte* on_device(const float* on_host) const;
  double read_sum(const StepBuffers& buffers, TensorId tensor, std::int64_t element = 0) const;
  void read_result(const StepBuffers& buffers, StepResult& result);
  void read_phase_seconds(int buffer);

  Backend& backend_;
  MeshCommunicators communicators_;
  std::vector<PlacedProgram> programs_;
  MemoryPlan plan_;
  FreshCopies fresh_copies_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Stream> copies_;                // null: the batch is copied on the compute stream
  std::vector<std::unique_ptr<Stream>> threads_;  // threads of the compute streams after the first, for all programs
  std::unique_ptr<CollectiveBinder> collectives_;
  std::vector<Memory> regions_;
  std::vector<Memory> host_memory_;  // memory that allocate_host() returned
  std::vector<std::unique_ptr<Bound>> bound_;
  std::vector<std::unique_ptr<StepBuffers>> step_buffers_;  // used in turn by the steps
  std::int64_t started_ = 0;
  int under_way_ = 0;
  std::vector<float> host_;  // copies of the kept regions, one after the other; empty if they are in host memory
  std::vector<NamedTensor> weights_;
  std::vector<NamedTensor> state_;
  OpObserver* observer_ = nullptr;
  bool timing_ = false;
  Phases phases_;
};

}  // namespace trainctl
