// Finds the sample that a worker has been reading since the last look.
#include "io/loader/batches/slow_read.h"

#include <utility>

#include "io/loader/splits/split.h"

namespace trainctl {
namespace {

// The end of a name, which tells samples apart, if it is too long for the record.
std::string short_name(const std::string& name) {
  constexpr std::string_view dots = "...";
  if (name.size() <= flight_text_bytes) return name;
  std::size_t begin = name.size() - flight_text_bytes + dots.size();
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xc0) == 0x80) ++begin;
  return std::string(dots) + name.substr(begin);
}

}  // namespace

SlowRead::SlowRead(const DataSplit& split, int workers, bool training, std::function<FlightRecord*()> flight)
    : split_(split),
      count_(workers),
      training_(training),
      flight_(std::move(flight)),
      workers_(std::make_unique<Worker[]>(static_cast<std::size_t>(workers))) {}

void SlowRead::waits(std::int64_t batch) {
  FlightRecord* const flight = flight_ ? flight_() : nullptr;
  if (flight == nullptr) return;
  std::int64_t reading = -1;
  for (int i = 0; i < count_; ++i) {
    const Worker& worker = workers_[static_cast<std::size_t>(i)];
    // The position is loaded first: it is a sample of this batch, or the last sample of an earlier one, which the next
    // call replaces.
    const std::int64_t position = worker.position.load(std::memory_order_acquire);
    if (position < 0 || worker.batch.load(std::memory_order_relaxed) != batch) continue;
    reading = position;
    if (position == entered_) return;  // this read still goes on
  }
  if (reading < 0) return;
  if (!std::exchange(has_line_, true)) {
    line_ = flight->line(FlightThread::data, training_ ? "training samples" : "evaluation samples");
  }
  line_.enter(
      {.activity = Activity::reading_data, .step = flight->step(), .text = short_name(split_.name_of(reading))});
  entered_ = reading;
}

void SlowRead::ends() {
  if (std::exchange(entered_, -1) >= 0) line_.leave();
}

}  // namespace trainctl
