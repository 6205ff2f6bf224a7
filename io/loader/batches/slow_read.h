// Enters in the flight record which sample a loader waits for, so that a read that hangs can be named.
//
// A worker stores its batch, and the position of its sample before each read, which costs next to nothing. Only a wait
// of more than a tenth of a second looks at these positions and finds the sample's name.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/flight_record.h"

namespace trainctl {

class DataSplit;

class SlowRead {
 public:
  // `flight` returns the rank's flight record; null if there is none. Without the function `flight`, nothing is
  // recorded. The split must outlive this object.
  SlowRead(const DataSplit& split, int workers, bool training, std::function<FlightRecord*()> flight);

  // Called by a worker before it reads samples of a batch.
  void begins(std::uint32_t worker, std::int64_t batch) {
    workers_[worker].batch.store(batch, std::memory_order_relaxed);
  }
  // Called by a worker before it reads the sample at a position of the split, and after its chunk (position -1).
  void reads(std::uint32_t worker, std::int64_t position) {
    workers_[worker].position.store(position, std::memory_order_release);
  }
  // Called about ten times a second by the thread that waits for a batch.
  void waits(std::int64_t batch);
  // Called by this thread when the wait has ended.
  void ends();

 private:
  // In a cache line of its own, since each worker writes often.
  struct alignas(64) Worker {
    std::atomic<std::int64_t> batch{-1};
    std::atomic<std::int64_t> position{-1};  // -1: reads no sample
  };

  const DataSplit& split_;
  int count_;
  bool training_;
  std::function<FlightRecord*()> flight_;
  std::unique_ptr<Worker[]> workers_;
  // The members below are used by the waiting thread only.
  FlightLine line_;
  bool has_line_ = false;
  std::int64_t entered_ = -1;  // the position that is under way in the record
};

}  // namespace trainctl
