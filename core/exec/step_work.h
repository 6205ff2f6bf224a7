// A program's step as a flat list of work: copies of what the host brings, kernels and marks, bound to their places
// once; run one by one, or recorded by the device and replayed as a whole.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "core/compile/placed_program.h"
#include "core/compile/step_inputs.h"

namespace trainctl {

// What a part of a step's time is counted as.
enum class StepPart { upload, forward, backward, communication, update };
inline constexpr int step_parts = 5;
using PartSeconds = std::array<double, step_parts>;

// One thing to do. A kernel, or where that is null a copy from a source, or where that has no bytes nothing.
struct StepUnit {
  StepPart part = StepPart::upload;
  bool recordable = true;
  Kernel* kernel = nullptr;
  Slot slot;
  int segment = -1;  // of the kernel, and its op there
  int op = -1;
  std::size_t source = scalars_source;
  std::int64_t from = 0;  // bytes behind the source
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
};

// Sees every op that runs, after it ran; for profiles and for the search for NaNs. Costs a synchronisation an op.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void ran(const PlacedProgram& program, int segment, int op, double start_seconds, double end_seconds) = 0;
};

class StepWork {
 public:
  // All outlive the work. `buffers`: how many step buffers there are, in which the host's values may lie. `long_ops`:
  // ops that take long are marked too, for what is said when a peer is lost.
  StepWork(Backend& backend, Stream& stream, const PlacedProgram& program, int buffers, bool long_ops);

  void add(const StepUnit& unit);
  // After the last unit. `take_results(buffer)` queues the copies back to the host, behind everything else.
  void complete(std::function<void(int buffer)> take_results);

  // Queues the step. From the second run with the same buffers on the device replays what it recorded, where it can.
  // Without marks seconds() and reached() know nothing of it, and a small network's step is shorter by what they cost.
  void run(int buffer, const StepSources& sources, bool marked);
  // Unit by unit, each waited for.
  void run_observed(int buffer, const StepSources& sources, OpObserver& observer);
  // Unit by unit, with the time of each counted on the host's clock; for devices that run in the host's own time.
  void run_timed(int buffer, const StepSources& sources, PartSeconds& seconds);

  // Where the time of the buffer's last run went, by the device's clock. Only after the run has ended; zeros without
  // marks.
  PartSeconds seconds(int buffer) const;
  // What the device reached last in the buffer's run: "conv2d 'c3' in backward". "" without marks.
  std::string reached(int buffer) const;

 private:
  // A range of units that a device records as one, or runs one by one.
  struct Range {
    std::size_t first = 0, end = 0;
    bool recordable = true;
    std::vector<std::unique_ptr<Recording>> recordings;  // by buffer, without marks and with
  };
  // A mark is set before the unit.
  struct Mark {
    std::size_t unit = 0;
    StepPart part = StepPart::upload;
  };

  // Queues a unit; where that is a copy, all those that follow with it, as one. Returns the number of the next unit.
  std::size_t queue(std::size_t unit, const StepSources& sources);
  void queue(const Range& range, int buffer, const StepSources& sources);

  Backend& backend_;
  Stream& stream_;
  const PlacedProgram& program_;
  int buffers_;
  bool long_ops_;
  std::vector<StepUnit> units_;
  std::vector<CopyPart> parts_;  // of copies that are queued as one
  std::vector<Range> ranges_;
  std::vector<Mark> marks_;
  std::vector<std::unique_ptr<Marks>> set_;  // by buffer; empty: the device has none
  std::function<void(int)> take_results_;
  std::vector<int> runs_;     // by buffer
  std::vector<char> marked_;  // by buffer: whether its last run sets marks
};

}  // namespace trainctl
