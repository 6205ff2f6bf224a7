// Runs a function on n ranks that are threads, and returns their errors.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "parallel/comm/communicators.h"

namespace trainctl {

// Returns the error of each rank; empty if it threw nothing. `deadline` limits all waits for other ranks.
inline std::vector<std::string> on_threads(int ranks, const std::function<void(Communicator&)>& run,
                                           std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  const auto communicators = thread_communicators(ranks, deadline);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run(*communicators[rank]);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace trainctl
