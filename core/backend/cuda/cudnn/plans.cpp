// Makes plans of cuDNN's engines in parallel.
#include "core/backend/cuda/cudnn/plans.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "core/base/blocked_signals.h"

namespace trainctl::cuda {
namespace {

constexpr int max_threads = 32;  // limited since each handle of cuDNN holds GPU memory

// Runs work(0) on this thread and work(1), ... on threads that block all signals. Rethrows one exception of work().
void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  const auto guarded = [&](std::size_t thread) {
    try {
      work(thread);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  try {
    const BlockedSignals blocked;
    for (std::size_t thread = 1; thread < count; ++thread) threads.emplace_back(guarded, thread);
  } catch (const std::system_error&) {  // continues with fewer threads
  }
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

Plans::Plans(const GraphTarget& target, int threads)
    : target_(target), threads_(static_cast<std::size_t>(std::clamp(threads, 1, max_threads))) {
  if (target.handle != nullptr) check(cudaGetDevice(&device_), "cudaGetDevice");
}

Plans::GraphPointer Plans::graph(const MakeGraph& make) {
  Graph graph = make();
  const auto [known, added] = graphs_.try_emplace(graph.text());
  if (added && graph.finalize(target_)) {
    known->second = std::make_shared<const KnownGraph>(KnownGraph{make, std::move(graph)});
  }
  return known->second;
}

void Plans::make_all(std::span<const Wanted> wanted) {
  std::vector<std::pair<const Wanted*, Entry*>> missing;
  for (const Wanted& one : wanted) {
    const auto [entry, added] = plans_.try_emplace({one.graph->graph.text(), one.engine});
    if (added) missing.emplace_back(&one, &entry->second);
  }
  const std::size_t threads = std::min(threads_, missing.size());
  const bool own_handles = target_.handle != nullptr;
  std::atomic<std::size_t> next{0};
  try {
    if (own_handles) open_handles(threads);
    run_on_threads(threads, [&](std::size_t thread) {
      const bool own = thread > 0 && own_handles;
      if (own) check(cudaSetDevice(device_), "cudaSetDevice");
      const GraphTarget target = own ? GraphTarget{handles_[thread - 1].get(), nullptr} : target_;
      for (std::size_t i; (i = next++) < missing.size();) {
        const auto& [one, entry] = missing[i];
        if (!own) {
          entry->plan = Plan::make(one->graph->graph, target, one->engine);
        } else if (Graph again = one->graph->make(); again.finalize(target)) {  // since descriptors belong to a handle
          entry->plan = Plan::make(again, target, one->engine);
        }
      }
    });
  } catch (...) {  // drops the missing entries, so that a later call makes them
    std::erase_if(plans_, [&](const auto& known) {
      return std::any_of(missing.begin(), missing.end(), [&](const auto& one) { return one.second == &known.second; });
    });
    throw;
  }
  made_ += static_cast<int>(missing.size());
}

// Opens a handle for each thread except the calling one.
void Plans::open_handles(std::size_t threads) {
  while (handles_.size() + 1 < threads) handles_.push_back(make<OwnedCudnn>(cudnnCreate, "cudnnCreate"));
}

std::optional<Plan> Plans::get(const Wanted& wanted) {
  make_all(std::span(&wanted, 1));
  return plans_.at({wanted.graph->graph.text(), wanted.engine}).plan;
}

void Plans::settle(bool all_stay) {
  for (auto known = plans_.begin(); known != plans_.end();) {
    Entry& entry = known->second;
    entry.stays = entry.stays || all_stay || !entry.plan || entry.plan->is_shared();
    known = entry.stays ? std::next(known) : plans_.erase(known);
  }
}

}  // namespace trainctl::cuda
