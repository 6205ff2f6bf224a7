// Work on pieces by several threads, whose results are used in the order of the pieces.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace trainctl {

// Calls next(), which returns a piece or no value at the end, then a thread's work(piece), and then use(result) in the
// order of the pieces. next() and use() are called by one thread at a time. `make_work` is called once in each thread
// and returns its work. At most a few results for each thread wait for their turn. The error of the first piece that
// fails is thrown, whichever thread finds one first; the results before this piece are used.
template <class Next, class MakeWork, class Use>
void work_in_order(int threads, Next next, MakeWork make_work, Use use) {
  using Piece = typename std::invoke_result_t<Next>::value_type;
  using Result = std::invoke_result_t<std::invoke_result_t<MakeWork>, Piece&>;
  struct Done {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  std::mutex mutex;  // of everything below
  std::condition_variable turn;
  std::int64_t taken = 0, used = 0;
  bool ended = false;
  std::exception_ptr error;
  std::map<std::int64_t, Done> waiting;
  const std::int64_t most_waiting = std::int64_t{4} * threads;

  const auto use_waiting = [&] {
    for (auto first = waiting.find(used); first != waiting.end() && !error; first = waiting.find(used)) {
      Done done = std::move(first->second);
      waiting.erase(first);
      ++used;
      if (done.error) {
        error = done.error;
      } else {
        use(*done.result);
      }
    }
  };
  const auto run = [&] {
    auto work = make_work();
    std::unique_lock lock(mutex);
    for (;;) {
      turn.wait(lock, [&] { return ended || error || taken - used < most_waiting; });
      if (ended || error) return;
      std::optional<Piece> piece;
      Done done;
      const std::int64_t number = taken++;
      try {
        piece = next();
      } catch (...) {
        done.error = std::current_exception();
      }
      ended = ended || !piece;
      if (!piece && !done.error) {
        --taken;
        return turn.notify_all();
      }
      if (piece) {
        lock.unlock();
        try {
          done.result.emplace(work(*piece));
        } catch (...) {
          done.error = std::current_exception();
        }
        lock.lock();
      }
      waiting.emplace(number, std::move(done));
      use_waiting();
      turn.notify_all();
    }
  };
  const auto guarded = [&] {
    try {
      run();
    } catch (...) {  // from make_work() or use()
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      turn.notify_all();
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(guarded);
  guarded();
  others.clear();  // waits for them
  if (error) std::rethrow_exception(error);
}

}  // namespace trainctl
