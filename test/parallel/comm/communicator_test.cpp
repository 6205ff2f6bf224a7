// Runs the conformance cases on one rank and on threads, and tests the errors if a rank does not take part.
#include "core/backend/immediate_stream.h"
#include "core/backend/select.h"
#include "core/base/error.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/parallel/comm/conformance.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::communicator_test {
namespace {

// The error of a case on the host's memory; empty if there is none.
std::string conforms(const conformance::Case& one, Communicator& communicator) {
  const auto backend = make_backend("cpu");
  const auto stream = backend->compute_stream();
  try {
    one.run({communicator, *backend, *stream});
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a rank alone conforms") {
  for (const conformance::Case& one : conformance::cases()) {
    INFO(one.name);
    const auto communicator = solo_communicator();
    CHECK(conforms(one, *communicator) == "");
  }
}

TEST_CASE("a rank alone conforms in its device's memory") {
  for (const conformance::Case& one : conformance::cases()) {
    INFO(one.name);
    const auto backend = make_backend("cpu");
    const auto stream = backend->compute_stream();
    const auto communicator = solo_communicator(*backend);
    CHECK_NOTHROW(one.run({*communicator, *backend, *stream}));
  }
}

TEST_CASE("threads conform") {
  const int ranks = GENERATE(1, 2, 3, 4);
  for (const conformance::Case& one : conformance::cases()) {
    INFO(one.name << " on " << ranks << " ranks");
    CHECK(on_threads(ranks, [&](Communicator& communicator) {
            const std::string problem = conforms(one, communicator);
            conformance::expect(problem.empty(), problem);
          }) == std::vector<std::string>(ranks));
  }
}

TEST_CASE("a staged communicator conforms") {
  const int ranks = GENERATE(1, 2, 3);
  for (const conformance::Case& one : conformance::cases()) {
    INFO(one.name << " on " << ranks << " ranks");
    CHECK(on_threads(ranks, [&](Communicator& communicator) {
            const auto backend = make_backend("cpu");
            const auto stream = backend->compute_stream();
            const auto staged = staged_communicator(communicator.split(0, communicator.rank()), *backend);
            one.run({*staged, *backend, *stream});
          }) == std::vector<std::string>(ranks));
  }
}

TEST_CASE("a missed deadline names the rank that did not arrive") {
  const auto errors = on_threads(
      3,
      [](Communicator& communicator) {
        ImmediateStream stream;
        float value = 1;
        communicator.barrier(stream);
        if (communicator.rank() == 1) return;
        communicator.all_reduce({&value, DType::float32, 1}, Reduction::sum, stream);
        stream.synchronize();
      },
      std::chrono::milliseconds(100));
  CHECK(errors[1].empty());
  for (const int rank : {0, 2}) {
    CHECK(errors[rank].find("all_reduce of 4 bytes") != std::string::npos);
    CHECK(errors[rank].find("rank 1 ") != std::string::npos);
  }
}

// Rank 0 waits for rank 2; ranks 1 and 2 wait for rank 3, each in another group: only rank 3 is late.
TEST_CASE("a chain of waits in split communicators names the rank at its end") {
  const bool by_messages = GENERATE(false, true);
  const auto errors = on_threads(
      4,
      [&](Communicator& world) {
        const int rank = world.rank();
        const auto rows = world.split(rank / 2, rank), columns = world.split(rank % 2, rank);
        ImmediateStream stream;
        float value = 1;
        if (rank == 3) return;
        // Shared with rank 3 for ranks 1 and 2, with rank 2 for rank 0.
        Communicator& first = rank == 2 ? *rows : *columns;
        if (by_messages) {
          first.receive({&value, DType::float32, 1}, 1 - first.rank(), stream);
        } else {
          first.all_reduce({&value, DType::float32, 1}, Reduction::sum, stream);
        }
        stream.synchronize();
      },
      std::chrono::milliseconds(100));
  for (const int rank : {0, 1, 2}) {
    CAPTURE(rank, errors[rank]);
    CHECK(errors[rank].find("rank 3 did not arrive within 0.1 s") != std::string::npos);
  }
}

TEST_CASE("after a missed deadline a rank waits for no other communicator") {
  const auto errors = on_threads(
      2,
      [](Communicator& world) {
        const auto first = world.split(0, world.rank()), second = world.split(0, world.rank());
        if (world.rank() == 1) return;
        ImmediateStream stream;
        first->barrier(stream);
        second->barrier(stream);
        for (int i = 0; i < 200; ++i) second->barrier(stream);
        const auto start = std::chrono::steady_clock::now();
        try {
          stream.synchronize();
        } catch (const Error& error) {
          conformance::expect(error.kind() == ErrorKind::peer, "the kind of error");
        }
        conformance::expect(std::chrono::steady_clock::now() - start < std::chrono::seconds(1), "one deadline");
        second->barrier(stream);
        stream.synchronize();
      },
      std::chrono::milliseconds(50));
  CHECK(errors[0].find("the communicator has failed: barrier: rank 1 did not arrive") != std::string::npos);
}

TEST_CASE("an abort of one rank ends the others' waits") {
  const auto errors = on_threads(3, [](Communicator& communicator) {
    ImmediateStream stream;
    if (communicator.rank() == 2) communicator.abort(4);
    communicator.barrier(stream);
    stream.synchronize();
  });
  CHECK(errors[2].find("exit code 4") != std::string::npos);
  CHECK(errors[0].find("rank 2 has given up") != std::string::npos);
  CHECK(errors[1].find("rank 2 has given up") != std::string::npos);
}

TEST_CASE("different calls of the ranks are reported") {
  const auto errors = on_threads(2, [](Communicator& communicator) {
    ImmediateStream stream;
    std::vector<float> values(8);
    communicator.all_reduce({values.data(), DType::float32, 4 + communicator.rank()}, Reduction::sum, stream);
    stream.synchronize();
  });
  for (const std::string& error : errors) CHECK(error.find("different calls") != std::string::npos);
}

TEST_CASE("bfloat16 is summed in float32 and rounded once") {
  const auto errors = on_threads(4, [](Communicator& communicator) {
    ImmediateStream stream;
    // 256 + 1 is 256 in bfloat16, and 256 + 1 + 1 + 1 lies half-way between 258 and 260, of which 260 is even.
    std::uint16_t value = communicator.rank() == 0 ? 0x4380 : 0x3F80;
    communicator.all_reduce({&value, DType::bfloat16, 1}, Reduction::sum, stream);
    stream.synchronize();
    conformance::expect(value == 0x4382, "256 + 1 + 1 + 1 is 260");
  });
  CHECK(errors == std::vector<std::string>(4));
}

}  // namespace trainctl::communicator_test
