// A program's step as a flat list of work: copies from the host, kernels and marks, with their addresses bound once.
// The list runs unit by unit, or the device records it and replays it as a whole.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/base/flight_record.h"
#include "core/compile/placed_program.h"
#include "core/compile/step_inputs.h"
#include "core/exec/collectives.h"

namespace trainctl {

// The phases that a step's time is divided into.
enum class StepPhase { upload, forward, backward, communication, update };
inline constexpr int step_phases = 5;
using PhaseSeconds = std::array<double, step_phases>;

// One unit of work: a kernel; if that is null, a copy from a source; if its bytes are 0, no work.
struct StepUnit {
  StepPhase phase = StepPhase::upload;
  bool recordable = true;
  Kernel* kernel = nullptr;
  Slot slot;
  int segment = -1;  // segment of the kernel's op, and the op's number in the segment
  int op = -1;
  std::size_t source = scalars_source;
  std::int64_t from = 0;  // offset in the source, in bytes
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
  int stream = 0;  // number of the compute stream
};

// An observer that is called after every op with the op's slot; it is used for profiles and the search for NaNs. It
// costs one synchronisation for each op.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void ran(const PlacedProgram& program, int segment, int op, int slot, double start_seconds,
                   double end_seconds) = 0;
};

class StepWork {
 public:
  // All references must outlive the work. `buffers` is the number of step buffers that may hold the host's values.
  // `peers` are the communicators of the program's collectives. If they have peers, ops that take long get marks, too,
  // so that reached() can name the op at which a peer was lost. `threads` are asynchronous streams for the compute
  // streams after stream 0; missing streams are added.
  StepWork(Backend& backend, Stream& stream, std::vector<std::unique_ptr<Stream>>& threads,
           const PlacedProgram& program, int buffers, const MeshCommunicators& peers);

  // Adds a unit. Units of different compute streams run at the same time; units of one stream must be added one after
  // the other.
  void add(const StepUnit& unit);
  // Units that are added later wait for all units that were added before, in every compute stream.
  void wait_for_all() { sections_.emplace_back(); }
  // Must be called after the last unit was added. `take_results(buffer)` queues the copies of the results to the host,
  // after all units.
  void complete(std::function<void(int buffer)> take_results);

  // Writes the ops of all further runs to the rank's flight record, which must outlive the work; null: none.
  void set_flight(FlightRecord* flight);

  // Queues the step. From the second run with the same buffer on, a device that can record replays its recording. If
  // collectives are recorded, a step is recorded on all ranks or on none.
  // Without marks, the step of a small network is faster, but seconds() and reached() have no values.
  void run(int buffer, const StepSources& sources, bool marked);
  // Runs unit by unit, waiting for each, and calls the observer after each op.
  void run_observed(int buffer, const StepSources& sources, OpObserver& observer);
  // Runs unit by unit and sets `seconds` to the time of each phase on the host's clock; for devices that run
  // synchronously with the host. With several compute streams, it measures the times of stream 0 and counts the wait
  // for the other streams as communication.
  void run_timed(int buffer, const StepSources& sources, PhaseSeconds& seconds);

  // The seconds of each phase of the buffer's last run, by the device's clock. Valid after the run has ended; zeros
  // without marks.
  PhaseSeconds seconds(int buffer) const;
  // Returns the op of the last mark that the device passed in the buffer's run, such as "conv2d 'c3' in backward"; ""
  // without marks.
  std::string reached(int buffer) const;

 private:
  // A range of units that the device records as one, or that run one by one.
  struct Range {
    std::size_t first = 0, end = 0;
    bool recordable = true;
    std::vector<std::unique_ptr<Recording>> recordings;  // for each variant, see recorded_
  };
  // A mark, set before the unit at index `unit`.
  struct Mark {
    std::size_t unit = 0;
    StepPhase phase = StepPhase::upload;
  };

  // A stream on which units are queued, and memory for queueing copies.
  struct Queue {
    Stream* stream = nullptr;
    std::vector<CopyRange> copies = {};  // copies that are queued as one
    FlightLine* line = nullptr;          // in the flight record; null: none
  };
  // A range of units of one compute stream.
  struct Units {
    std::size_t first = 0, end = 0;
  };
  // Units that run at the same time, one range for each compute stream, after the units of the previous section.
  struct Section {
    std::vector<Units> of_stream;
  };
  // A compute stream after stream 0. Its units run on a thread of its own.
  struct SideStream {
    Units units;  // units of the current section
    Stream* thread = nullptr;
    std::unique_ptr<Stream> compute;  // used on that thread
    Queue queue;
    FlightLine line;
    const StepWork* work = nullptr;
    const StepSources* sources = nullptr;
  };

  // Queues a unit; if the unit is a copy, queues it together with all copies that follow in its stream, as one copy.
  // Returns the number of the next unit.
  std::size_t queue(std::size_t unit, const StepSources& sources, Queue& in) const;
  // Enters the op of a unit, or the replay of a recording, in the flight record.
  void enter(std::size_t unit, FlightLine& line) const;
  void enter_recording();
  // Runs units on this thread, and adds their times to `seconds` if it is not null.
  void run_units(Units units, const StepSources& sources, PhaseSeconds* seconds);
  void make_side_streams();
  static void run_side_stream(void* side_stream);
  void join_side_streams();
  // Runs the units of all streams; the units of stream 0 run on this thread. `seconds` is the argument of run_timed(),
  // or null.
  void run_streams(int buffer, const StepSources& sources, PhaseSeconds* seconds);
  void run(const Section& section, const StepSources& sources, PhaseSeconds* seconds);
  void queue(const Range& range, int buffer, const StepSources& sources);
  // Records the ranges that can be recorded.
  void record(int buffer, std::size_t variant, const StepSources& sources);

  Backend& backend_;
  Stream& stream_;
  std::vector<std::unique_ptr<Stream>>& threads_;
  const PlacedProgram& program_;
  int buffers_;
  const MeshCommunicators& peers_;
  std::vector<StepUnit> units_;
  Queue main_;
  std::vector<std::unique_ptr<SideStream>> side_streams_;
  std::vector<Section> sections_;
  std::vector<Range> ranges_;
  std::vector<Mark> marks_;
  std::vector<std::unique_ptr<Marks>> set_;  // the marks of each buffer; empty if the device has no marks
  std::function<void(int)> take_results_;
  std::vector<int> runs_;     // number of runs of each buffer
  std::vector<char> marked_;  // for each buffer: whether its last run set marks
  // For each variant: whether record() was called. Variant 2 * buffer has no marks, and variant 2 * buffer + 1 has
  // marks.
  std::vector<char> recorded_;
  FlightRecord* flight_ = nullptr;
  std::vector<std::string> texts_;  // of each unit, for the flight record; empty without one
};

}  // namespace trainctl
