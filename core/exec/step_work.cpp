// Runs a step's units of work, sets their marks, and records ranges of units.
#include "core/exec/step_work.h"

#include <algorithm>
#include <exception>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/observe/op_text.h"

namespace trainctl {
namespace {

// On a GPU, an op with more FLOPs than this takes much longer than a mark, so that it gets a mark of its own.
constexpr double long_op_flops = 1e10;

bool is_long(const PlacedProgram& program, const StepUnit& unit) {
  return unit.kernel != nullptr && work_of(program, program.op(unit.segment, unit.op).op).flops > long_op_flops;
}

}  // namespace

StepWork::StepWork(Backend& backend, Stream& stream, std::vector<std::unique_ptr<Stream>>& threads,
                   const PlacedProgram& program, int buffers, const MeshCommunicators& peers)
    : backend_(backend),
      stream_(stream),
      threads_(threads),
      program_(program),
      buffers_(buffers),
      peers_(peers),
      main_{&stream, {}, nullptr},
      runs_(static_cast<std::size_t>(buffers)),
      marked_(static_cast<std::size_t>(buffers)),
      recorded_(2 * static_cast<std::size_t>(buffers)) {}

void StepWork::add(const StepUnit& unit) {
  if (ranges_.empty() || ranges_.back().recordable != unit.recordable) {
    ranges_.push_back({units_.size(), units_.size(), unit.recordable, {}});
  }
  const bool new_phase = units_.empty() || units_.back().phase != unit.phase || units_.back().segment != unit.segment;
  if (new_phase || (peers_.has_peers() && is_long(program_, unit))) {
    marks_.push_back({units_.size(), unit.phase});
  }
  if (sections_.empty()) sections_.emplace_back();
  std::vector<Units>& of_stream = sections_.back().of_stream;
  const auto stream = static_cast<std::size_t>(unit.stream);
  of_stream.resize(std::max(of_stream.size(), stream + 1));
  Units& units = of_stream[stream];
  if (units.first == units.end) units = {units_.size(), units_.size()};
  require(units.end == units_.size(), "the units of a compute stream are not added one after the other");
  ++units.end;
  units_.push_back(unit);
  ranges_.back().end = units_.size();
}

void StepWork::complete(std::function<void(int buffer)> take_results) {
  take_results_ = std::move(take_results);
  make_side_streams();
  if (!ranges_.back().recordable) ranges_.push_back({units_.size(), units_.size(), true, {}});
  for (Range& range : ranges_) range.recordings.resize(2 * static_cast<std::size_t>(buffers_));
  for (int buffer = 0; buffer < buffers_; ++buffer) {
    // The last mark is set at the end of the step.
    auto marks = backend_.marks(static_cast<int>(marks_.size()) + 1);
    if (marks != nullptr) set_.push_back(std::move(marks));
  }
}

std::size_t StepWork::queue(std::size_t unit, const StepSources& sources, Queue& in) const {
  const StepUnit& first = units_[unit];
  if (first.kernel != nullptr) {
    if (in.line != nullptr) enter(unit, *in.line);
    first.kernel->run(*in.stream, first.slot);
    return unit + 1;
  }
  in.copies.clear();
  for (; unit < units_.size() && units_[unit].kernel == nullptr; ++unit) {  // no mark is set between copies
    const StepUnit& copy = units_[unit];
    if (copy.stream != first.stream) break;
    in.copies.push_back({copy.to, sources[static_cast<std::size_t>(copy.source)] + copy.from, copy.bytes});
  }
  backend_.copy_all(in.copies, *in.stream);
  return unit;
}

void StepWork::set_flight(FlightRecord* flight) {
  if (flight == flight_) return;
  flight_ = flight;
  main_.line = flight == nullptr ? nullptr : &flight->training();
  texts_.clear();
  for (const StepUnit& unit : units_) {
    texts_.push_back(unit.kernel == nullptr ? "" : op_text(program_, unit.segment, unit.op));
  }
  int stream = 1;
  for (const auto& side : side_streams_) {
    side->line = flight == nullptr ? FlightLine() : flight->line(FlightThread::training, format("stream {}", stream++));
    side->queue.line = flight == nullptr ? nullptr : &side->line;
  }
}

void StepWork::enter(std::size_t unit, FlightLine& line) const {
  const StepPhase phase = units_[unit].phase;
  line.enter({.activity = phase == StepPhase::communication ? Activity::communicating
                          : phase == StepPhase::update      ? Activity::updating
                                                            : Activity::computing,
              .step = flight_->step(),
              .number = static_cast<std::int32_t>(unit),
              .text = texts_[unit]});
}

// A recording runs on the device, while the host goes on.
void StepWork::enter_recording() {
  if (main_.line == nullptr) return;
  main_.line->enter({.activity = Activity::computing, .step = flight_->step(), .text = "a recorded step"});
}

void StepWork::make_side_streams() {
  std::size_t streams = 1;
  for (const Section& section : sections_) streams = std::max(streams, section.of_stream.size());
  while (side_streams_.size() + 1 < streams) {
    auto side = std::make_unique<SideStream>();
    if (threads_.size() == side_streams_.size()) threads_.push_back(backend_.asynchronous_stream());
    side->thread = threads_[side_streams_.size()].get();
    side->compute = backend_.compute_stream();
    side->queue.stream = side->compute.get();
    side->work = this;
    side_streams_.push_back(std::move(side));
  }
}

void StepWork::run_side_stream(void* side_stream) {
  SideStream& side = *static_cast<SideStream*>(side_stream);
  for (std::size_t next = side.units.first; next < side.units.end;) {
    next = side.work->queue(next, *side.sources, side.queue);
  }
  side.compute->synchronize();
}

void StepWork::run_units(Units units, const StepSources& sources, PhaseSeconds* seconds) {
  while (units.first < units.end) {
    const StepPhase phase = units_[units.first].phase;
    const double start = seconds == nullptr ? 0 : seconds_now();
    while (units.first < units.end && units_[units.first].phase == phase) {
      units.first = queue(units.first, sources, main_);
    }
    if (seconds != nullptr) (*seconds)[static_cast<std::size_t>(phase)] += seconds_now() - start;
  }
}

void StepWork::join_side_streams() {
  std::exception_ptr error;
  for (const auto& side : side_streams_) {
    try {
      side->thread->synchronize();
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

void StepWork::run(const Section& section, const StepSources& sources, PhaseSeconds* seconds) {
  if (section.of_stream.empty()) return;
  for (std::size_t stream = 1; stream < section.of_stream.size(); ++stream) {
    SideStream& side = *side_streams_[stream - 1];
    side.units = section.of_stream[stream];
    side.sources = &sources;
    side.thread->enqueue({&StepWork::run_side_stream, &side});
  }
  try {
    run_units(section.of_stream[0], sources, seconds);
  } catch (...) {
    join_side_streams();  // the side streams use memory that the caller may free after the error
    throw;
  }
  if (section.of_stream.size() == 1) return;
  const double reached = seconds_now();
  join_side_streams();
  if (seconds != nullptr) (*seconds)[static_cast<std::size_t>(StepPhase::communication)] += seconds_now() - reached;
}

void StepWork::run_streams(int buffer, const StepSources& sources, PhaseSeconds* seconds) {
  for (const Section& section : sections_) run(section, sources, seconds);
  take_results_(buffer);
}

void StepWork::queue(const Range& range, int buffer, const StepSources& sources) {
  const auto t = static_cast<std::size_t>(buffer);
  Marks* marks = marked_[t] != 0 ? set_[t].get() : nullptr;
  std::size_t next = 0;
  while (next < marks_.size() && marks_[next].unit < range.first) ++next;
  for (std::size_t unit = range.first; unit < range.end;) {
    if (marks != nullptr && next < marks_.size() && marks_[next].unit == unit) {
      marks->set(static_cast<int>(next++), stream_);
    }
    unit = queue(unit, sources, main_);
  }
  if (&range != &ranges_.back()) return;
  if (marks != nullptr) marks->set(static_cast<int>(marks_.size()), stream_);
  take_results_(buffer);
}

void StepWork::run(int buffer, const StepSources& sources, bool marked) {
  if (!side_streams_.empty()) return run_streams(buffer, sources, nullptr);
  const auto t = static_cast<std::size_t>(buffer);
  marked_[t] = marked && !set_.empty() ? 1 : 0;
  const std::size_t variant = 2 * t + static_cast<std::size_t>(marked_[t]);
  if (runs_[t]++ > 0 && recorded_[variant] == 0) record(buffer, variant, sources);  // the first run loads kernels
  for (Range& range : ranges_) {
    Recording* const recording = range.recordings[variant].get();
    if (recording == nullptr) {
      queue(range, buffer, sources);
    } else {
      enter_recording();
      recording->run(stream_);
    }
  }
}

// Peers that communicate in a recording would wait forever for a rank that communicates without one.
void StepWork::record(int buffer, std::size_t variant, const StepSources& sources) {
  recorded_[variant] = 1;
  bool all = true;
  for (Range& range : ranges_) {
    if (!range.recordable) continue;
    range.recordings[variant] = backend_.record(stream_, [&] { queue(range, buffer, sources); });
    range.recordable = range.recordings[variant] != nullptr;
    all = all && range.recordable;
  }
  if (!peers_.record_together() || peers_.true_on_all(all)) return;
  if (all) log::warning("steps are not recorded, because another rank cannot record them");
  for (Range& range : ranges_) {
    range.recordable = false;
    range.recordings[variant] = nullptr;
  }
}

void StepWork::run_observed(int buffer, const StepSources& sources, OpObserver& observer) {
  const auto marks = backend_.marks(2);  // set before and after each op, so that the time of its launch is not counted
  for (std::size_t next = 0; next < units_.size();) {
    const StepUnit& unit = units_[next];
    const double start = seconds_now();
    if (marks != nullptr) {
      marks->hold(stream_);
      marks->set(0, stream_);
    }
    next = queue(next, sources, main_);
    if (marks != nullptr) marks->set(1, stream_);
    stream_.synchronize();
    const double end = marks == nullptr ? seconds_now() : start + marks->seconds(1) - marks->seconds(0);
    if (unit.kernel != nullptr) observer.ran(program_, unit.segment, unit.op, unit.slot.index, start, end);
  }
  take_results_(buffer);
}

void StepWork::run_timed(int buffer, const StepSources& sources, PhaseSeconds& seconds) {
  seconds = {};
  if (!side_streams_.empty()) return run_streams(buffer, sources, &seconds);
  run_units({0, units_.size()}, sources, &seconds);
  take_results_(buffer);
}

PhaseSeconds StepWork::seconds(int buffer) const {
  PhaseSeconds seconds{};
  if (marked_[static_cast<std::size_t>(buffer)] == 0) return seconds;
  const Marks& marks = *set_[static_cast<std::size_t>(buffer)];
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    seconds[static_cast<std::size_t>(marks_[i].phase)] +=
        marks.seconds(static_cast<int>(i) + 1) - marks.seconds(static_cast<int>(i));
  }
  return seconds;
}

std::string StepWork::reached(int buffer) const {
  if (marked_[static_cast<std::size_t>(buffer)] == 0) return "";
  const int last = set_[static_cast<std::size_t>(buffer)]->last();
  if (last < 0) return "no op yet";
  if (last >= static_cast<int>(marks_.size())) return "the end";
  const StepUnit& unit = units_[marks_[static_cast<std::size_t>(last)].unit];
  if (unit.segment < 0) return "the batch's copies";
  return op_text(program_, unit.segment, unit.op);
}

}  // namespace trainctl
