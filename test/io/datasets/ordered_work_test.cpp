// Tests work on pieces by several threads: results in the order of the pieces, and the error of the first piece.
#include "io/datasets/text/ordered_work.h"

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/catch.h"

namespace trainctl::test::ordered_work_test {
namespace {

// Works on `count` pieces with random delays; piece `bad` fails, and so does each one after it. Returns the results.
std::vector<int> worked(int threads, int count, int bad, std::string* error = nullptr) {
  std::vector<int> used;
  int next = 0;
  std::atomic<int> at_once{0}, most{0};
  try {
    work_in_order(
        threads, [&]() { return next < count ? std::optional(next++) : std::nullopt; },
        [&] {
          return [&](int& piece) {
            most = std::max<int>(most, ++at_once);
            std::mt19937 random(static_cast<unsigned>(piece));
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            --at_once;
            if (piece >= bad) throw std::runtime_error("piece " + std::to_string(piece));
            return piece * piece;
          };
        },
        [&](int& result) { used.push_back(result); });
  } catch (const std::runtime_error& thrown) {
    if (error) *error = thrown.what();
  }
  CHECK(most <= threads);
  if (threads > 1 && count > 50 && bad >= count) CHECK(most > 1);
  return used;
}

std::vector<int> squares(int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i * i);
  return numbers;
}

}  // namespace

TEST_CASE("work in order: results are used in the order of the pieces for any number of threads") {
  for (const int threads : {1, 2, 5}) {
    CHECK(worked(threads, 200, 1000) == squares(200));
    CHECK(worked(threads, 0, 1).empty());
  }
}

TEST_CASE("work in order: the error of the first piece is thrown, after the results before it") {
  for (const int threads : {1, 2, 5}) {
    std::string error;
    CHECK(worked(threads, 200, 37, &error) == squares(37));
    CHECK(error == "piece 37");
  }
}

TEST_CASE("work in order: an error of the source or of the use ends the work") {
  int next = 0, used = 0;
  const auto make_work = [] { return [](int& piece) { return piece; }; };
  const auto fails = [&]() -> std::optional<int> {
    if (next == 20) throw std::runtime_error("the source");
    return next++;
  };
  CHECK_THROWS_WITH(work_in_order(3, fails, make_work, [&](int&) { ++used; }), "the source");
  CHECK(used == 20);
  const auto endless = [&]() { return std::optional(next++); };
  CHECK_THROWS_WITH(work_in_order(3, endless, make_work, [](int&) { throw std::runtime_error("the use"); }), "the use");
}

}  // namespace trainctl::test::ordered_work_test
