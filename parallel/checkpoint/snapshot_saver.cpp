// Saving in three agreements: the folder is there, all files are written, the checkpoint is complete.
#include "parallel/checkpoint/snapshot_saver.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Memory for parts that other ranks hold.
std::unique_ptr<std::byte[]> allocate(const std::vector<NamedTensor>& parts) {
  std::int64_t bytes = 0;
  for (const NamedTensor& part : parts) bytes += part.extent.count(part.shape) * size_of(DType::float32);
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

// The parts with the memory in which this rank holds them.
std::vector<NamedTensor> with_memory(std::vector<NamedTensor> parts, std::span<const NamedTensor> held) {
  const auto found = by_name(held);
  for (NamedTensor& part : parts) part.view = found.at(part.name)->view;
  return parts;
}

}  // namespace

SnapshotSaver::SnapshotSaver(const SnapshotPlan& plan, SnapshotOutlet outlet, Communicator& ranks, Stream& stream)
    : outlet_(outlet), ranks_(ranks), stream_(stream), can_write_(static_cast<std::size_t>(ranks.size())) {
  require((ranks.rank() == 0) == (outlet.store != nullptr), "rank 0 keeps the checkpoints");
  can_write_[static_cast<std::size_t>(ranks.rank())] = outlet.sink != nullptr;
  ranks.all_gather({can_write_.data(), DType::int32, ranks.size()}, stream);
  stream.synchronize();
  require(can_write_[0] != 0, "rank 0 can write");
  add_files(plan.weights, SnapshotContent::weights);
  if (!outlet.weights_only) add_files(plan.state, SnapshotContent::state);
}

void SnapshotSaver::add_files(const ShardPlan& plan, SnapshotContent content) {
  const std::vector<int>& writers = plan.writers();
  for (std::size_t i = 0; i < writers.size(); ++i) {
    files_.push_back({&plan, {content, static_cast<int>(i) + 1, static_cast<int>(writers.size())}, writers[i]});
  }
  bytes_ += plan.bytes();
}

bool SnapshotSaver::holds_all_on_rank_0() const {
  return std::all_of(files_.begin(), files_.end(), [](const File& file) { return file.rank == 0; });
}

std::string SnapshotSaver::save(const Snapshot& snapshot) {
  const auto together = [this](const std::function<void()>& work) {
    JointAttempt attempt(ranks_, stream_);
    attempt.run(work);
    attempt.throw_if_any_failed();
  };
  try {
    SnapshotTarget target;
    std::string path;
    together([&] {
      if (outlet_.store != nullptr) target = outlet_.store->begin(snapshot.step, bytes_);
    });
    if (!holds_all_on_rank_0()) share(target);
    const std::vector<std::string> records = write_files(snapshot, target);
    together([&] {
      if (outlet_.store != nullptr) path = outlet_.store->commit(snapshot, records);
    });
    return path;
  } catch (...) {
    if (outlet_.store != nullptr) outlet_.store->abandon();
    throw;
  }
}

// Rank 0's target on all ranks.
void SnapshotSaver::share(SnapshotTarget& target) {
  target.path = broadcast_text(target.path, 0, ranks_, stream_);
  target.address = broadcast_text(target.address, 0, ranks_, stream_);
  target.bytes = bytes_;
}

// What the files' sinks returned, on rank 0.
std::vector<std::string> SnapshotSaver::write_files(const Snapshot& snapshot, const SnapshotTarget& target) {
  JointAttempt attempt(ranks_, stream_);
  std::vector<std::string> records(files_.size());
  const auto can_write = [this](const File& file) { return can_write_[static_cast<std::size_t>(file.rank)] != 0; };
  const auto parts = [&](const File& file) {
    std::vector<NamedTensor> all = file.plan->shards_of(file.rank);
    if (file.rank != ranks_.rank()) return all;
    const bool weights = file.file.content == SnapshotContent::weights;
    return with_memory(std::move(all), weights ? snapshot.weights : snapshot.state);
  };
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    if (file.rank != ranks_.rank() || !can_write(file)) continue;
    attempt.run([&] { records[i] = outlet_.sink->write(target, file.file, parts(file)); });
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const bool takes_part = files_[i].rank == ranks_.rank() || ranks_.rank() == 0;
    if (takes_part && !can_write(files_[i])) write_carried(files_[i], parts(files_[i]), target, attempt, records[i]);
  }
  attempt.throw_if_any_failed();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].rank == 0 || !can_write(files_[i])) continue;
    if (files_[i].rank == ranks_.rank()) send_text(records[i], 0, ranks_, stream_);
    if (ranks_.rank() == 0) records[i] = receive_text(files_[i].rank, ranks_, stream_);
  }
  return records;
}

// A file of a rank without a sink: rank 0 receives all its parts, whatever failed before, and writes it.
void SnapshotSaver::write_carried(const File& file, const std::vector<NamedTensor>& parts, const SnapshotTarget& target,
                                  JointAttempt& attempt, std::string& record) {
  if (ranks_.rank() == file.rank) {
    for (const NamedTensor& part : parts) ranks_.send(part.view, 0, stream_);
    stream_.synchronize();
    return;
  }
  const std::unique_ptr<std::byte[]> memory = allocate(parts);
  std::vector<NamedTensor> received = parts;
  std::byte* next = memory.get();
  for (NamedTensor& part : received) {
    part.view = {next, DType::float32, part.extent.count(part.shape)};
    next += part.view.bytes();
    ranks_.receive(part.view, file.rank, stream_);
  }
  stream_.synchronize();
  attempt.run([&] { record = outlet_.sink->write(target, file.file, received); });
}

}  // namespace trainctl
