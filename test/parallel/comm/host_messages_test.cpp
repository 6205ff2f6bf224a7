// Tests message rings between ranks that are threads: all sizes, all directions, and messages that are never sent or
// received.
#include "parallel/comm/host_messages.h"

#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm/host_memory.h"
#include "test/catch.h"

namespace trainctl::host_messages_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Message {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
};

// The unique content of message `number`.
Bytes text_of(std::size_t number, std::int64_t bytes) {
  std::mt19937 random(static_cast<std::uint32_t>(number));
  Bytes text(static_cast<std::size_t>(bytes));
  for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(random());
  return text;
}

Call call_of(CallKind kind, Bytes& data) {
  return {.kind = kind, .data = {data.data(), DType::uint8, static_cast<std::int64_t>(data.size())}};
}

// Runs a function on ranks that are threads; returns the kind and text of each rank's error.
template <class Run>
std::vector<std::pair<ErrorKind, std::string>> on_ranks(int ranks, Run run,
                                                        std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  std::vector<Memory> memory;
  std::vector<std::byte*> bases;
  std::vector<int> world_ranks;  // they differ from the ranks of the group
  for (int rank = 0; rank < ranks; ++rank) {
    bases.push_back(memory.emplace_back(allocate_host(HostMessages::base_bytes(ranks))).get());
    world_ranks.push_back(10 + rank);
  }
  std::vector<std::pair<ErrorKind, std::string>> errors(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<HostMessages>> messages;
  std::deque<Attendance> attendances;
  for (int rank = 0; rank < ranks; ++rank) {
    messages.push_back(std::make_unique<HostMessages>(rank, bases, world_ranks, attendances.emplace_back(deadline)));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run(rank, *messages[rank]);
      } catch (const Error& error) {
        errors[rank] = {error.kind(), error.what()};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Every rank takes part in its messages in the order of the list.
void trade(int ranks, const std::vector<Message>& list) {
  std::vector<std::size_t> wrong(static_cast<std::size_t>(ranks), list.size());
  const auto errors = on_ranks(ranks, [&](int rank, HostMessages& messages) {
    for (std::size_t number = 0; number < list.size(); ++number) {
      const Message& message = list[number];
      if (message.from == rank) {
        Bytes sent = text_of(number, message.bytes);
        messages.send(call_of(CallKind::send, sent), message.to);
      } else if (message.to == rank) {
        Bytes received(static_cast<std::size_t>(message.bytes));
        messages.receive(call_of(CallKind::receive, received), message.from);
        if (received != text_of(number, message.bytes) && wrong[rank] == list.size()) wrong[rank] = number;
      }
    }
  });
  for (int rank = 0; rank < ranks; ++rank) {
    INFO("rank " << rank);
    CHECK(errors[rank].second == "");
    CHECK(wrong[rank] == list.size());
  }
}

}  // namespace

TEST_CASE("random messages of all sizes arrive complete and in order") {
  const int ranks = GENERATE(2, 3, 4);
  std::mt19937 random(static_cast<std::uint32_t>(ranks));
  std::vector<Message> list;
  for (int i = 0; i < 600; ++i) {
    const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const int to = (from + 1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
    list.push_back({from, to, static_cast<std::int64_t>(random() % (1u << (random() % 18)))});  // up to 128 KiB
  }
  trade(ranks, list);
}

TEST_CASE("messages grow beyond the largest ring, and shrink again") {
  std::vector<Message> list;
  for (const std::int64_t bytes : {0, 1, 64 << 10, (1 << 20) + 1, (33 << 20) + 7, 5, 3 << 20}) {
    list.push_back({0, 1, bytes});
    list.push_back({0, 1, 1});
    list.push_back({1, 0, bytes});
  }
  trade(2, list);
}

TEST_CASE("a sender continues before its message is received, until the ring is full") {
  const auto errors = on_ranks(
      2,
      [](int rank, HostMessages& messages) {
        Bytes data(1000);
        if (rank == 0) messages.send(call_of(CallKind::send, data), 1);  // nobody receives
        if (rank == 1) {
          data.resize(1 << 20);
          for (int i = 0; i < 100; ++i) messages.send(call_of(CallKind::send, data), 0);
        }
      },
      std::chrono::milliseconds(200));
  CHECK(errors[0].second == "");
  CHECK(errors[1].first == ErrorKind::peer);
  CHECK(errors[1].second.find("send of 1048576 bytes: rank 10 did not arrive within 0.2 s") != std::string::npos);
}

TEST_CASE("a rank that gives up ends the waits of the others") {
  const auto errors = on_ranks(2, [](int rank, HostMessages& messages) {
    Bytes data(8);
    if (rank == 1) messages.leave();
    if (rank == 0) messages.receive(call_of(CallKind::receive, data), 1);
  });
  CHECK(errors[0].first == ErrorKind::peer);
  CHECK(errors[0].second.find("receive of 8 bytes: rank 11 has given up") != std::string::npos);
}

TEST_CASE("a message of another size than expected is refused, and both ranks give up") {
  const auto errors = on_ranks(2, [](int rank, HostMessages& messages) {
    Bytes data(rank == 0 ? 8 : 12);
    const Call call = call_of(rank == 0 ? CallKind::send : CallKind::receive, data);
    rank == 0 ? messages.send(call, 1) : messages.receive(call, 0);
    if (rank == 0) messages.receive(call_of(CallKind::receive, data), 1);
  });
  CHECK(errors[1].first == ErrorKind::internal);
  CHECK(errors[1].second.find("receive of 12 bytes: rank 10 sends 8 bytes") != std::string::npos);
  CHECK(errors[0].second.find("rank 11 has given up") != std::string::npos);
}

}  // namespace trainctl::host_messages_test
