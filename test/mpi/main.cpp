// What the ranks of the MPI tests do: test-mpi SCENE [RANKS_PER_HOST shared|private].
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/backend/select.h"
#include "core/base/error.h"
#include "parallel/comm/mpi.h"
#include "parallel/health/replicas.h"
#include "test/comm/conformance.h"

using namespace trainctl;

namespace {

void conform(Communicator& communicator) {
  communicator.set_deadline(std::chrono::seconds(60));
  const auto backend = make_backend("cpu");
  const auto stream = backend->compute_stream();
  for (const conformance::Case& one : conformance::cases()) {
    try {
      one.run({communicator, *backend, *stream});
    } catch (const std::exception& error) {
      throw std::runtime_error(one.name + ": " + error.what());
    }
  }
  if (communicator.rank() == 0) std::puts("all cases passed");
}

// Rank 1 stays away from a collective, for longer than the deadline.
void late(Communicator& communicator) {
  ImmediateStream stream;
  float value = 1;
  communicator.barrier(stream);
  stream.synchronize();
  communicator.set_deadline(std::chrono::milliseconds(300));
  if (communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  communicator.all_reduce({&value, DType::float32, 1}, Reduction::sum, stream);
  stream.synchronize();
}

void silent(Communicator& communicator) {
  ImmediateStream stream;
  float value = 1;
  communicator.set_deadline(std::chrono::milliseconds(300));
  if (communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  communicator.receive({&value, DType::float32, 1}, 1, stream);
  stream.synchronize();
}

// One rank leaves while the others wait without a deadline.
void leave(Communicator& communicator) {
  ImmediateStream stream;
  if (communicator.rank() == 1) {
    std::puts("rank 1 aborts");
    communicator.abort(4);
  }
  communicator.barrier(stream);
  stream.synchronize();
}

void differ(Communicator& communicator) {
  ImmediateStream stream;
  std::vector<float> values = {1.5f, 2.5f, communicator.rank() == 2 ? 3.0f : 3.5f};
  ReplicaCheck check(
      {{"a", {2}, {values.data(), DType::float32, 2}}, {"b", {}, {values.data() + 2, DType::float32, 1}}},
      communicator);
  check.compare(stream);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scene = argc > 1 ? argv[1] : "";
  MpiOptions options;
  if (argc > 2) options.ranks_per_host = std::atoi(argv[2]);
  if (argc > 3) options.shared_memory = std::string(argv[3]) == "shared";
  MpiEnvironment environment;
  const auto communicator = mpi_communicator(environment, options);
  try {
    if (scene == "conformance") conform(*communicator);
    if (scene == "late") late(*communicator);
    if (scene == "silent") silent(*communicator);
    if (scene == "abort") leave(*communicator);
    if (scene == "replicas") differ(*communicator);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    communicator->abort(exit_code(error.kind()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", environment.rank(), error.what());
    communicator->abort(1);
  }
  environment.finalize();
  return 0;
}
