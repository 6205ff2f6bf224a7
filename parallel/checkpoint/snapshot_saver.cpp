// Saves in three steps: the folder is created, all files are written, the checkpoint is committed. All ranks agree
// after each step.
#include "parallel/checkpoint/snapshot_saver.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "parallel/comm/paced_transfer.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Allocates memory for shards received from another rank.
std::unique_ptr<std::byte[]> allocate(const std::vector<NamedTensor>& shards) {
  std::int64_t bytes = 0;
  for (const NamedTensor& shard : shards) bytes += shard.extent.count(shard.shape) * size_of(DType::float32);
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

// Sets the shards' memory to where this rank holds them. Each search begins after the last shard that was found, and so
// finds the next one at once if both lists have the same order.
void set_memory(std::vector<NamedTensor>& shards, std::span<const NamedTensor> held) {
  auto next = held.begin();
  for (NamedTensor& shard : shards) {
    const auto is_held = [&](const NamedTensor& tensor) { return tensor.name == shard.name; };
    auto found = std::find_if(next, held.end(), is_held);
    if (found == held.end()) found = std::find_if(held.begin(), next, is_held);
    require(found != held.end() && is_held(*found), "a snapshot lacks a tensor of its plan");
    shard.view = found->view;
    next = found + 1;
  }
}

}  // namespace

SnapshotSaver::SnapshotSaver(const SnapshotPlan& plan, SnapshotOutlet outlet, Communicator& ranks, Stream& stream)
    : outlet_(outlet), ranks_(ranks), stream_(stream), can_write_(static_cast<std::size_t>(ranks.size())) {
  require((ranks.rank() == 0) == (outlet.store != nullptr),
          "a rank other than rank 0 has the checkpoint store, or rank 0 has no store");
  can_write_[static_cast<std::size_t>(ranks.rank())] = outlet.sink != nullptr;
  ranks.all_gather({can_write_.data(), DType::int32, ranks.size()}, stream);
  stream.synchronize();
  require(can_write_[0] != 0, "rank 0 cannot write");
  add_files(plan.weights, SnapshotContent::weights);
  if (!outlet.weights_only) add_files(plan.state, SnapshotContent::state);
}

void SnapshotSaver::add_files(const ShardPlan& plan, SnapshotContent content) {
  const std::vector<int>& writers = plan.writers();
  for (std::size_t i = 0; i < writers.size(); ++i) {
    File file{{content, static_cast<int>(i) + 1, static_cast<int>(writers.size())}, writers[i], {}};
    const bool is_sent = ranks_.rank() == 0 && !can_write(file);
    if (file.rank == ranks_.rank() || is_sent) file.shards = plan.shards_of(file.rank);
    files_.push_back(std::move(file));
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

// Broadcasts rank 0's target to all ranks.
void SnapshotSaver::share(SnapshotTarget& target) {
  target.path = broadcast_text(target.path, 0, ranks_, stream_);
  target.address = broadcast_text(target.address, 0, ranks_, stream_);
  target.bytes = bytes_;
}

// Writes all files; returns on rank 0 the descriptions that the sinks have returned.
std::vector<std::string> SnapshotSaver::write_files(const Snapshot& snapshot, const SnapshotTarget& target) {
  JointAttempt attempt(ranks_, stream_);
  std::vector<std::string> records(files_.size());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    if (file.rank != ranks_.rank()) continue;
    set_memory(file.shards, file.file.content == SnapshotContent::weights ? snapshot.weights : snapshot.state);
    if (can_write(file)) attempt.run([&] { records[i] = outlet_.sink->write(target, file.file, file.shards); });
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (can_write(files_[i])) continue;
    PacedTransfer transfer(ranks_, stream_, outlet_.gives_up);
    const bool involved = files_[i].rank == ranks_.rank() || ranks_.rank() == 0;
    if (involved) write_on_rank_0(files_[i], target, transfer, attempt, records[i]);
    transfer.finish();
  }
  attempt.throw_if_any_failed();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].rank == 0 || !can_write(files_[i])) continue;
    if (files_[i].rank == ranks_.rank()) send_text(records[i], 0, ranks_, stream_);
    if (ranks_.rank() == 0) records[i] = receive_text(files_[i].rank, ranks_, stream_);
  }
  return records;
}

// Writes the file of a rank without a sink: rank 0 receives all its shards, even if an earlier file failed, and writes
// them.
void SnapshotSaver::write_on_rank_0(const File& file, const SnapshotTarget& target, PacedTransfer& transfer,
                                    JointAttempt& attempt, std::string& record) {
  if (ranks_.rank() == file.rank) {
    for (const NamedTensor& shard : file.shards) transfer.send(shard.view, 0);
    return;
  }
  const std::unique_ptr<std::byte[]> memory = allocate(file.shards);
  std::vector<NamedTensor> received = file.shards;
  std::byte* next = memory.get();
  for (NamedTensor& shard : received) {
    shard.view = {next, DType::float32, shard.extent.count(shard.shape)};
    next += shard.view.bytes();
    transfer.receive(shard.view, file.rank);
  }
  attempt.run([&] { record = outlet_.sink->write(target, file.file, received); });
}

}  // namespace trainctl
