// Opens the copies on a second host, and brings the newest state to rank 0.
#include "run/training/memory_copies.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/options.h"
#include "parallel/checkpoint/staged_saver.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/comm/paced_transfer.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/watch/copies_note.h"
#include "run/job/job.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"
#include "run/training/training.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

// Whether no lower rank runs on the host of this rank.
bool is_first_on_host(const std::vector<std::string>& hosts, int rank) {
  const auto own = hosts.begin() + rank;
  return std::find(hosts.begin(), own, *own) == own;
}

// Whether the supervisor with this name has started the ranks that have written in a run directory last.
bool is_of_launch(const std::string& run_directory, const std::string& launch) {
  return !launch.empty() && lock_generation(run_directory).launch == launch;
}

// A checkpoint or copy that a run has left on this host; step -1: none.
struct FoundState {
  std::string path;
  std::int64_t step = -1;
};

// Finds the newest state in the memory and in the run directory of this host. Its files are verified when it is loaded.
FoundState newest_state_here(const std::string& run_directory, const std::string& launch) {
  FoundState newest;
  const std::string copies = memory_folder_of(run_directory);
  for (const std::string& folder : {copies, run_directory}) {
    if (!(folder == copies ? are_copies_of(folder, launch) : is_of_launch(folder, launch))) continue;
    try {
      const std::optional<CheckpointFolder> found = newest_checkpoint_by_manifest(folder);
      if (found && found->step > newest.step) newest = {found->path, found->step};
    } catch (const Error& error) {
      log::debug(error.what());
    }
  }
  return newest;
}

// Sends the files of a folder to rank 0, if rank 0 has space for them: the name of each file, then its bytes in pieces
// of `transfer`, and an empty piece. An empty name ends the files. A file that cannot be read is sent cut, which rank 0
// notices by its hash.
void send_files(const std::string& folder, PacedTransfer& transfer, Communicator& ranks, Stream& stream) {
  std::vector<std::string> names;
  std::int64_t bytes = 0;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    names.push_back(entry.path().filename());
    bytes += static_cast<std::int64_t>(entry.file_size(none));
  }
  send_text(std::to_string(bytes), 0, ranks, stream);
  if (receive_text(0, ranks, stream).empty()) return;
  constexpr std::streamsize most = PacedTransfer::piece_bytes;
  std::string piece;
  for (const std::string& name : names) {
    send_text(name, 0, ranks, stream);
    std::ifstream file(folder + "/" + name, std::ios::binary);
    do {
      piece.resize(most);
      file.read(piece.data(), most);
      piece.resize(static_cast<std::size_t>(file.gcount()));
      send_text(piece, 0, ranks, stream);
      if (!piece.empty()) transfer.end_piece();
    } while (!piece.empty());
  }
  send_text("", 0, ranks, stream);
}

// Removes all copies but the one of this name, or this one alone if it is damaged: of several, the run would go on from
// the one that was saved last on this host.
void keep_only(const std::string& folder, const std::string& name) {
  std::error_code none;
  try {
    load_checkpoint(folder + "/checkpoints/" + name);
  } catch (const Error& error) {
    log::warning(format("the newest state of the run was damaged when it was copied here: {}", error.what()));
    fs::remove_all(folder + "/checkpoints/" + name, none);
    return;
  }
  for (const CheckpointFolder& copy : list_checkpoints(folder)) {
    if (fs::path(copy.path).filename() != name) fs::remove_all(copy.path, none);
  }
}

// Receives the files that `holder` sends, as a copy in the memory of this host.
void receive_files(const std::string& folder, const std::string& name, const Generation& generation, int holder,
                   PacedTransfer& transfer, Communicator& ranks, Stream& stream) {
  const std::int64_t bytes = std::stoll(receive_text(holder, ranks, stream));
  RunLock lock(generation);
  std::unique_ptr<AtomicFolder> target;
  try {
    if (!are_copies_of(folder, generation.launch)) remove_memory_folder(folder);
    create_memory_folder(folder, bytes);
    lock.take(folder);
    create_folders(folder + "/checkpoints");
    target = std::make_unique<AtomicFolder>(folder + "/checkpoints/" + name);
  } catch (const Error& error) {
    log::warning(format("the newest state of the run is on another host and cannot be copied here: {}", error.what()));
  }
  send_text(target ? "send" : "", holder, ranks, stream);
  if (!target) return;
  for (std::string file = receive_text(holder, ranks, stream); !file.empty();
       file = receive_text(holder, ranks, stream)) {
    std::ofstream out(target->temporary() + "/" + file, std::ios::binary);
    for (std::string piece = receive_text(holder, ranks, stream); !piece.empty();
         piece = receive_text(holder, ranks, stream)) {
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
      transfer.end_piece();
    }
  }
  try {
    target->commit();
    keep_only(folder, name);
  } catch (const Error& error) {
    log::warning(format("the newest state of the run cannot be copied here: {}", error.what()));
  }
}

}  // namespace

std::optional<int> peer_of(const std::vector<std::string>& hosts) {
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&](const auto& host) { return host != hosts.front(); });
  return found != hosts.end() ? std::optional(static_cast<int>(found - hosts.begin())) : std::nullopt;
}

std::int64_t PeerPlan::staged_bytes(const CheckpointOptions& options) const {
  const std::int64_t state = options.weights_only ? 0 : plan.state.bytes_of(ranks->rank());
  return options.background ? StagedSaver::copies * (plan.weights.bytes_of(ranks->rank()) + state) : 0;
}

std::optional<PeerPlan> plan_peer(const StepEngine& engine, World& world, Stream& stream) {
  const std::optional<int> peer = peer_of(world.hosts());
  if (!peer) return {};
  auto ranks = world.communicator().split(0, (world.rank() - *peer + world.size()) % world.size());
  SnapshotPlan plan = plan_snapshot(engine.weights(), engine.state(), *ranks, stream);
  return PeerPlan{std::move(ranks), std::move(plan)};
}

MemoryStore::MemoryStore(std::string folder_path, const Generation& generation, const std::string& resumed_from)
    : folder(std::move(folder_path)),
      lock(folder, generation),
      store(folder, StorePolicy{.keep = 1, .storage = Storage::shared_memory}, resumed_from) {
  note_copies(folder);
}

std::optional<int> open_peer_copies(RankRun& run, std::int64_t bytes) {
  World& world = run.context.world;
  Communicator& ranks = world.communicator();
  Stream& stream = run.device.host;
  const std::optional<int> peer = peer_of(world.hosts());
  if (!peer) return peer;
  RunFiles& files = run.files;
  const std::string absolute = files.directory ? fs::absolute(files.directory->path()).string() : "";
  const std::string folder = memory_folder_of(broadcast_text(absolute, 0, ranks, stream));
  const std::string holder = broadcast_text(files.memory ? lock_holder(files.memory->folder) : "", 0, ranks, stream);
  const bool is_elsewhere = world.hosts()[static_cast<std::size_t>(world.rank())] != world.hosts().front();
  const auto open = [&] {
    if (!is_elsewhere || !is_first_on_host(world.hosts(), world.rank())) return;
    if (!holder.empty() && lock_holder(folder) == holder) return;  // rank 0's own folder
    const bool keeps = world.rank() == *peer && !holder.empty();
    const Generation& generation = run.request.generation;
    const std::string owner = lock_holder(folder);
    if (!are_copies_of(folder, generation.launch) && holder_exists(owner).value_or(false)) {
      if (!keeps) return;
      throw Error(ErrorKind::resource, SourceLocation{folder}, "another run keeps its copies there: " + owner,
                  "choose another run directory (--run-dir)");
    }
    if (!keeps || !run.request.restart || !are_copies_of(folder, generation.launch)) remove_memory_folder(folder);
    if (!keeps) return;
    create_memory_folder(folder, copies_in_memory * bytes);
    files.memory = std::make_unique<MemoryStore>(folder, generation, "");
    files.memory->is_kept = run.context.situation.supervised;  // the supervisor and the agent remove the copies
  };
  JointAttempt attempt(ranks, stream);
  attempt.run(open);
  try {
    attempt.throw_if_any_failed();
  } catch (const CollectiveError& error) {
    if (!run.request.restart) throw;
    if (world.rank() == 0) log::warning(format("no copies are kept on a second host: {}", error.what()));
  }
  return any_rank(world.rank() == *peer && files.memory, ranks, stream) ? peer : std::nullopt;
}

void fetch_newest_state(const Restart& restart, const Generation& generation, World& world, Stream& stream) {
  if (restart.run_directory.empty() || !peer_of(world.hosts())) return;
  FoundState found;
  if (is_first_on_host(world.hosts(), world.rank())) {
    found = newest_state_here(restart.run_directory, generation.launch);
  }
  std::vector<std::int64_t> steps(static_cast<std::size_t>(world.size()), -1);
  steps[static_cast<std::size_t>(world.rank())] = found.step;
  Communicator& ranks = world.communicator();
  ranks.all_gather({steps.data(), DType::int64, world.size()}, stream);
  stream.synchronize();
  const auto newest = std::max_element(steps.begin(), steps.end());  // the lowest rank that has it
  const int holder = static_cast<int>(newest - steps.begin());
  if (*newest < 0 || holder == 0) return;
  PacedTransfer transfer(ranks, stream);
  if (world.rank() == holder) send_files(found.path, transfer, ranks, stream);
  if (world.rank() == 0) {
    const std::string& host = world.hosts()[static_cast<std::size_t>(holder)];
    log::info(format("the newest state of the run, of step {}, is copied from {}", *newest, host));
    receive_files(memory_folder_of(restart.run_directory), format("step-{:08}", *newest), generation, holder, transfer,
                  ranks, stream);
  }
  transfer.finish();
}

}  // namespace trainctl
