// Makes the faults of a run's config happen, each of them once, even if the run starts again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/mesh.h"
#include "parallel/health/faults/fault.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class Engine;
class SpoiledBatches;
class Stream;

class FaultRehearsal final : public TrainingHook, private FaultScene {
 public:
  // All of them must outlive the hook.
  struct Parts {
    const FaultList& faults;
    Engine& engine;
    SpoiledBatches& batches;  // the training batches
    Communicator& world;
    Stream& stream;
    const std::vector<std::string>& hosts;  // the host of each rank
    Mesh mesh;
    pid_t launcher = 0;         // see FaultScene
    std::int64_t steps = 0;     // number of training steps of the run; 0: unknown
    std::string run_directory;  // "" on all ranks but rank 0
    std::function<void()> wait_for_checkpoints;
    // Takes the seconds of a wait of a slow rank, which count as computing.
    std::function<void(double)> waited = {};
  };

  // Faults that have happened before are left out. Throws CollectiveError{config} that names all other faults that
  // cannot happen in this run. Collective.
  explicit FaultRehearsal(Parts parts);

  std::int64_t next_pause(std::int64_t step) const override;
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  int rank() const override;
  const std::vector<std::string>& hosts() const override { return parts_.hosts; }
  pid_t launcher() const override { return parts_.launcher; }
  const std::string& run_directory() const override { return parts_.run_directory; }
  void delay_steps(std::int64_t steps, double seconds) override;
  void spoil_next_batch(int rank) override;
  void flip_bit() override;
  void wait_for_checkpoints() override { parts_.wait_for_checkpoints(); }

  // A fault that has not happened, and its number in the list, from 1.
  struct Pending {
    std::size_t number = 0;
    Choice fault;

    const FaultOptions& options() const { return fault.as<FaultOptions>(); }
  };

  void find_pending();
  bool happens(const Pending& pending);

  Parts parts_;
  std::vector<Pending> pending_;
  std::int64_t slow_steps_ = 0;  // number of steps after which this rank still waits
  double delay_ = 0;             // seconds of each of these waits
};

}  // namespace trainctl
