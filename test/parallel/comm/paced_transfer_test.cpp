// Tests transfers that take longer than the deadline of all waits, while another rank waits for their end.
#include "parallel/comm/paced_transfer.h"

#include <chrono>
#include <random>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::paced_transfer_test {
namespace {

constexpr std::chrono::milliseconds deadline(1000);
constexpr int pieces = 6;

// Sends random pieces from rank 2 to rank 0, with this pause before each. Rank 1 waits. `gives_up`: whether rank 1
// gives up.
std::vector<std::string> transfer(std::chrono::milliseconds pause, bool gives_up = false) {
  constexpr std::int64_t count = 1000;
  return on_threads(
      3,
      [&](Communicator& ranks) {
        ImmediateStream stream;
        const std::atomic<bool> own{gives_up && ranks.rank() == 1};
        PacedTransfer transfer(ranks, stream, &own);
        std::mt19937 random(7);
        std::vector<float> data(count);
        for (int piece = 0; piece < pieces && ranks.rank() != 1; ++piece) {
          std::vector<float> sent(count);
          for (float& value : sent) value = std::uniform_real_distribution<float>(-1, 1)(random);
          if (ranks.rank() == 2) {
            std::this_thread::sleep_for(pause);
            transfer.send({sent.data(), DType::float32, count}, 0);
          } else {
            transfer.receive({data.data(), DType::float32, count}, 2);
            if (data != sent) throw Error(ErrorKind::internal, "the data is wrong");
          }
        }
        transfer.finish();
      },
      deadline);
}

TEST_CASE("a transfer that makes progress may take longer than the deadline, and the other ranks wait for it") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(transfer(deadline / 3) == std::vector<std::string>(3));
  CHECK(std::chrono::steady_clock::now() - begin > 3 * deadline / 2);
}

TEST_CASE("a transfer without progress ends all ranks, and the silent rank is named") {
  const auto errors = transfer(6 * deadline);
  CHECK(errors[0].find("rank 2") != std::string::npos);
  CHECK(errors[1].find("rank 2") != std::string::npos);
}

TEST_CASE("a transfer that one rank gives up ends on all ranks with the same error") {
  const auto errors = transfer(std::chrono::milliseconds(1), true);
  CHECK(errors[0].find("given up") != std::string::npos);
  CHECK(errors == std::vector<std::string>(3, errors[0]));
}

TEST_CASE("data of more than one piece arrives unchanged") {
  constexpr std::int64_t count = PacedTransfer::piece_bytes / 4 * 2 + 77;
  const auto errors = on_threads(2, [&](Communicator& ranks) {
    ImmediateStream stream;
    PacedTransfer transfer(ranks, stream);
    std::mt19937 random(11);
    std::vector<std::uint32_t> sent(count);
    for (std::uint32_t& value : sent) value = static_cast<std::uint32_t>(random());
    std::vector<std::uint32_t> data = sent;
    if (ranks.rank() == 0) {
      transfer.send({data.data(), DType::int32, count}, 1);
    } else {
      data.assign(count, 0);
      transfer.receive({data.data(), DType::int32, count}, 0);
    }
    transfer.finish();
    if (data != sent) throw Error(ErrorKind::internal, "the data is wrong");
  });
  CHECK(errors == std::vector<std::string>(2));
}

}  // namespace
}  // namespace trainctl::paced_transfer_test
