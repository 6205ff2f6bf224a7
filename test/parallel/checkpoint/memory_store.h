// A store and a sink that keep snapshots in memory, for all ranks of a process; writes can be held up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl::test {

// A shard of a tensor as it was written to the sink.
struct KeptShard {
  std::string name;
  Shape shape;
  TensorExtent extent;
  std::vector<float> values;
};

struct KeptSnapshot {
  std::int64_t step = 0;
  SnapshotMetadata metadata;
  std::map<std::string, std::vector<KeptShard>> files;  // by the sinks' descriptions
};

class MemoryStore final : public SnapshotStore, public SnapshotSink {
 public:
  SnapshotTarget begin(std::int64_t step, std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    begun_ = {.step = step};
    return {format("step {}", step), "memory", bytes};
  }
  void abandon() override {}

  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> parts) override {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !holds_; });
    if (target.path == fails_at_)
      throw Error(ErrorKind::resource, SourceLocation{target.path}, "cannot write: disk full");
    const std::string name =
        format("{} {} of {}", file.content == SnapshotContent::weights ? "weights" : "state", file.number, file.count);
    for (const NamedTensor& part : parts) {
      const float* values = part.view.as<float>();
      begun_.files[name].push_back({part.name, part.shape, part.extent, {values, values + part.view.count}});
    }
    return name;
  }

  std::string commit(const Snapshot& snapshot, std::span<const std::string>) override {
    const std::lock_guard lock(mutex_);
    require(begun_.step == snapshot.step, "the committed step is the one that was begun");
    begun_.metadata = snapshot.metadata;
    kept_.push_back(std::move(begun_));
    return format("step {}", snapshot.step);
  }

  // From now on writes wait until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    holds_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    holds_ = false;
    changed_.notify_all();
  }
  // Waits until `count` writes have started. Returns false if they have not within ten seconds.
  bool wait_for_writes(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return arrived_ >= count; });
  }
  // Writes for this step fail.
  void fail_at(std::int64_t step) { fails_at_ = format("step {}", step); }

  std::vector<KeptSnapshot> kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const KeptSnapshot& snapshot : kept()) steps.push_back(snapshot.step);
    return steps;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  int arrived_ = 0;
  std::string fails_at_;
  KeptSnapshot begun_;
  std::vector<KeptSnapshot> kept_;
};

}  // namespace trainctl::test
