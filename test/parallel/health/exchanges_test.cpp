// Tests the check of exchanged data: sound links pass; a flipped bit is counted and its link named, in both directions.
#include "parallel/health/doctor/exchanges.h"

#include <set>

#include "core/backend/immediate_stream.h"
#include "core/backend/select.h"
#include "core/base/json.h"
#include "parallel/health/doctor/pairs.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::exchanges_test {
namespace {

// Passes calls on to another communicator, and flips bits of large messages to one rank.
class FaultyLink final : public Communicator {
 public:
  FaultyLink(Communicator& base, int from, int to) : base_(base), from_(from), to_(to) {}

  int rank() const override { return base_.rank(); }
  int size() const override { return base_.size(); }
  std::string_view name() const override { return base_.name(); }
  bool recordable() const override { return false; }
  Memory allocate(std::int64_t bytes) override { return base_.allocate(bytes); }
  void all_reduce(View data, Reduction reduction, Stream& stream) override {
    base_.all_reduce(data, reduction, stream);
  }
  void reduce_scatter(View data, Reduction reduction, Stream& stream) override {
    base_.reduce_scatter(data, reduction, stream);
  }
  void all_gather(View data, Stream& stream) override { base_.all_gather(data, stream); }
  void all_to_all(View send, View receive, Stream& stream) override { base_.all_to_all(send, receive, stream); }
  void broadcast(View data, int root, Stream& stream) override { base_.broadcast(data, root, stream); }
  void send(View data, int peer, Stream& stream) override {
    if (rank() == from_ && peer == to_ && data.count > 1 << 20) data.as<std::uint32_t>()[data.count - 1] ^= 0x80000001;
    base_.send(data, peer, stream);
  }
  void receive(View data, int peer, Stream& stream) override { base_.receive(data, peer, stream); }
  void barrier(Stream& stream) override { base_.barrier(stream); }
  std::unique_ptr<Communicator> split(int color, int key) override { return base_.split(color, key); }
  Attendance& attendance() override { return base_.attendance(); }
  [[noreturn]] void abort(int exit_code) override {
    base_.abort(exit_code);
    std::_Exit(exit_code);
  }

 private:
  Communicator& base_;
  int from_, to_;
};

// The exchanges of `ranks` ranks that rank 0 reports, if the link between two ranks is faulty.
std::vector<Exchange> exchange(int ranks, int from, int to) {
  std::vector<Exchange> found;
  const auto errors = on_threads(ranks, [&](Communicator& world) {
    FaultyLink gpus(world, from, to);
    ImmediateStream host;
    const auto backend = make_backend("cpu");
    const std::vector<Exchange> own = exchange_data(gpus, *backend, world, host);
    if (world.rank() == 0) found = own;
  });
  for (const std::string& error : errors) CHECK(error == "");
  return found;
}

}  // namespace

TEST_CASE("every two players meet once, and no player meets two others in a round") {
  for (const int count : {2, 3, 4, 7, 8}) {
    CAPTURE(count);
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < rounds_of(count); ++round) {
      for (int own = 0; own < count; ++own) {
        const int other = opponent(own, round, count);
        REQUIRE(other != own);
        if (other >= count) continue;
        CHECK(opponent(other, round, count) == own);
        CHECK(met.emplace(own, other).second);
      }
    }
    CHECK(met.size() == static_cast<std::size_t>(count * (count - 1)));
  }
}

TEST_CASE("data that arrives unchanged is no problem, between any number of ranks") {
  for (const int ranks : {1, 2, 3}) {
    const std::vector<Exchange> found = exchange(ranks, -1, -1);
    CHECK(std::ssize(found) == 2 * ranks * (ranks - 1));
    for (const Exchange& one : found) CHECK(one.wrong_bits == 0);
    CHECK(problems_of(found, std::vector<std::string>(static_cast<std::size_t>(ranks), "node1")).empty());
  }
}

TEST_CASE("flipped bits are counted, and the direction in which they are wrong is named") {
  const std::vector<Exchange> found = exchange(3, 2, 0);
  const std::int64_t bytes = 4 * ((4 << 20) - 3);
  int wrong = 0;
  for (const Exchange& one : found) {
    if (one.wrong_bits == 0) continue;
    ++wrong;
    CHECK(one.from == 2);
    CHECK(one.to == 0);
    CHECK(one.bytes == bytes);
    CHECK(one.wrong_bits == 2);
    CHECK(one.first_wrong == bytes - 4);
  }
  CHECK(wrong == 1);
  const std::vector<Problem> problems = problems_of(exchanges_in(to_json(found)), {"a", "b", "b"});
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].stops_a_run);
  CHECK(problems[0].where == "b and a");
  CHECK(problems[0].message.find("rank 2 sends to that of rank 0 is corrupted: 2 of 134217632 bits") !=
        std::string::npos);
  CHECK(problems[0].remedy.find("NCCL_P2P_DISABLE=1") != std::string::npos);
}

}  // namespace trainctl::exchanges_test
