// Memory of the processes of one host that all of them see, and the places in it.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend/memory.h"
#include "parallel/comm/host_group.h"
#include "parallel/comm/mpi_check.h"

namespace trainctl {

// One piece of memory per rank, mapped by all. Each is a file without a name (memfd): it needs no room in /dev/shm,
// which containers limit, and leaves nothing behind, however the processes end.
class SharedSegment {
 public:
  // Collective over `host`, whose ranks must run on one host and may ask for different sizes. Zeroed. Empty, on all
  // ranks, where the system does not let processes share memory in this way; `why` then holds this rank's reason, if it
  // had one. Throws Error{resource} when memory runs out.
  static std::shared_ptr<SharedSegment> create(MPI_Comm host, std::int64_t bytes, std::string& why);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Rank i's memory, as this process sees it.
  const std::vector<std::byte*>& bases() const { return bases_; }

 private:
  SharedSegment() = default;

  std::vector<std::byte*> bases_;
  std::vector<std::size_t> lengths_;  // by rank
};

// The shared segments that a communicator's ranks allocated, all in the same order: region i is the i-th. Beyond the
// last entry memory is not found any more, which costs speed alone.
class SharedRegions final : public AddressMap {
 public:
  explicit SharedRegions(int rank) : rank_(rank) {}

  // Owned memory that is found in this book until it is freed. The book must be held by a shared_ptr.
  static Memory add(const std::shared_ptr<SharedRegions>& book, std::shared_ptr<SharedSegment> segment,
                    std::int64_t bytes);

  SharedPlace find(const void* data, std::int64_t bytes) const override;
  std::byte* resolve(int rank, const SharedPlace& place) const override;

 private:
  struct Region {
    std::atomic<std::byte*> begin{nullptr};
    std::int64_t bytes = 0;
    std::vector<std::byte*> bases;
  };

  int rank_;
  std::array<Region, 256> regions_;
  std::atomic<int> used_{0};
};

}  // namespace trainctl
