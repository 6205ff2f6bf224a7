// The program of the ranks in the MPI tests: test-mpi SCENE host|staged|nccl [RANKS_PER_HOST shared|private
// [RUN_DIRECTORY]]. The communicator under test is MPI's between host memories (host) or one between GPUs (staged,
// nccl). `test-mpi gpus` prints the number of GPUs.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/backend/select.h"
#include "core/base/error.h"
#include "parallel/comm/communicators.h"
#include "parallel/comm/environment.h"
#include "parallel/health/replicas.h"
#include "test/core/exec/collective_networks.h"
#include "test/mpi/records.h"
#include "test/mpi/snapshots.h"
#include "test/parallel/comm/conformance.h"

using namespace trainctl;

namespace {

// A rank with the communicator under test, and memory that it works on.
struct Rank {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Stream> stream;
  Memory value;  // four bytes, allocated by all ranks together

  void all_reduce() {
    communicator->all_reduce({value.get(), DType::float32, 1}, Reduction::sum, *stream);
    stream->synchronize();
  }
  void barrier() {
    communicator->barrier(*stream);
    stream->synchronize();
  }
};

Rank make_rank(const std::string& transport, std::unique_ptr<Communicator> host, int local_rank) {
  Rank rank;
  rank.backend = make_backend(transport == "host" ? "cpu" : "cuda", {.local_rank = local_rank});
  rank.stream = rank.backend->compute_stream();
  if (transport == "nccl") {
    rank.communicator = load_cuda_module().module->make_nccl(std::move(host), *rank.backend, true);
  } else if (transport == "staged") {
    rank.communicator = staged_communicator(std::move(host), *rank.backend);
  } else {
    rank.communicator = std::move(host);
  }
  rank.value = rank.communicator->allocate(4);
  return rank;
}

// Ends all ranks after what this rank has printed was read: mpiexec may drop what it reads during an abort.
void abort_all(Communicator& communicator, int code) {
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  communicator.abort(code);
}

void conform(Rank& rank) {
  for (const conformance::Case& one : conformance::cases()) {
    try {
      one.run({*rank.communicator, *rank.backend, *rank.stream});
    } catch (const std::exception& error) {
      throw std::runtime_error(one.name + ": " + error.what());
    }
  }
  if (rank.communicator->rank() == 0) std::puts("all cases passed");
}

void train_networks(Rank& rank) {
  collective_networks::run_all(*rank.backend, *rank.communicator);
  if (rank.communicator->rank() == 0) std::puts("all networks agree");
}

void record(Rank& rank) {
  record_calls(*rank.communicator, {rank.value.get(), DType::float32, 1}, *rank.stream);
  rank.barrier();
  if (rank.communicator->rank() == 0) std::puts("all calls are recorded");
}

// Rank 1 is late for a collective, by more than the deadline.
void late(Rank& rank) {
  rank.barrier();
  if (rank.communicator->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  rank.all_reduce();
}

// Rank 1 does not send what rank 0 waits for.
void silent(Rank& rank) {
  if (rank.communicator->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  rank.communicator->receive({rank.value.get(), DType::float32, 1}, 1, *rank.stream);
  rank.stream->synchronize();
}

// Rank 1 is late when all ranks make a communicator.
void split_without(Rank& rank) {
  if (rank.communicator->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  rank.communicator->split(0, rank.communicator->rank());
}

// Rank 1 is late when all ranks allocate memory.
void share_without(Rank& rank) {
  if (rank.communicator->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  rank.communicator->allocate(1 << 20);
}

// Rank 0 waits for rank 1. Ranks 1 and 2 wait for rank 3. Each of the three waits in a group of its own.
void wait_in_chain(Rank& rank) {
  const int own = rank.communicator->rank();
  const auto rows = rank.communicator->split(own / 2, own), columns = rank.communicator->split(own % 2, own);
  if (own == 3) std::this_thread::sleep_for(std::chrono::seconds(30));
  Communicator& group = own == 1 ? *columns : *rows;
  group.receive({rank.value.get(), DType::float32, 1}, 1 - group.rank(), *rank.stream);
  rank.stream->synchronize();
}

// One rank aborts while the others wait.
void leave(Rank& rank) {
  if (rank.communicator->rank() == 1) {
    std::puts("rank 1 aborts");
    abort_all(*rank.communicator, 4);
  }
  rank.barrier();
}

// The collective after a failed one must report why the communicator has failed.
void outlive(Rank& rank) {
  try {
    late(rank);
  } catch (const Error&) {
    rank.all_reduce();
  }
}

void differ(Rank& rank) {
  ImmediateStream stream;
  std::vector<float> values = {1.5f, 2.5f, rank.communicator->rank() == 2 ? 3.0f : 3.5f};
  ReplicaCheck check(
      {{"a", {2}, {values.data(), DType::float32, 2}}, {"b", {}, {values.data() + 2, DType::float32, 1}}},
      *rank.communicator, rank.communicator->rank(), stream);
  const auto found = check.find(stream);
  if (found) throw Error(ErrorKind::peer, "replicas differ: " + found->text, remedy_for_replicas);
}

void play(const std::string& scene, Rank& rank, const std::string& run_directory) {
  if (scene == "conformance") conform(rank);
  if (scene == "networks") train_networks(rank);
  if (scene == "records") record(rank);
  if (scene == "late") late(rank);
  if (scene == "silent") silent(rank);
  if (scene == "split") split_without(rank);
  if (scene == "share") share_without(rank);
  if (scene == "chain") wait_in_chain(rank);
  if (scene == "end" && rank.communicator->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  if (scene == "abort") leave(rank);
  if (scene == "outlive") outlive(rank);
  if (scene == "replicas") differ(rank);
  if (scene == "save") save_snapshot(*rank.communicator, run_directory);
  if (scene == "restore") restore_snapshot(*rank.communicator, run_directory);
  if (scene == "train-on") train_during_save(*rank.communicator);
  if (scene == "full-disk") save_on_full_disk(*rank.communicator);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scene = argc > 1 ? argv[1] : "";
  const std::string transport = argc > 2 ? argv[2] : "host";
  if (scene == "gpus") {
    std::printf("%zu\n", find_gpus("cuda").gpus.size());
    return 0;
  }
  MpiOptions options;
  if (argc > 3) options.ranks_per_host = std::atoi(argv[3]);
  if (argc > 4) options.shared_memory = std::string(argv[4]) == "shared";
  const std::set<std::string> with_late_rank = {"late", "silent", "outlive", "split", "share", "chain", "end"};
  MpiEnvironment environment(std::chrono::seconds(with_late_rank.contains(scene) ? 2 : 60));
  const auto world = mpi_communicator(environment, options);
  int code = 0;
  try {
    Rank rank = make_rank(transport, world->split(0, world->rank()), environment.local_rank());
    play(scene, rank, argc > 5 ? argv[5] : "");
    environment.gather({});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = exit_code(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", environment.rank(), error.what());
    code = 1;
  }
  if (code != 0) abort_all(*world, code);
  environment.finalize();
  return 0;
}
