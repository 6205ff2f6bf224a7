// Memory that is shared by the processes of one host, and the translation of addresses in it.
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

// One block of memory per rank, mapped by all ranks. Each block is a file without a name (memfd), which needs no space
// in /dev/shm, which containers limit, and disappears however the processes end.
class SharedSegment {
 public:
  // Creates zeroed memory. All ranks of `host` must call this function; they must run on one host and may ask for
  // different sizes. Returns null on all ranks if the system does not allow processes to share memory in this way;
  // `why` is then the reason of this rank, or empty if another rank failed. Throws Error{resource} if there is not
  // enough memory.
  static std::shared_ptr<SharedSegment> create(MPI_Comm host, std::int64_t bytes, std::string& why);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // The address of each rank's memory in this process.
  const std::vector<std::byte*>& bases() const { return bases_; }

 private:
  SharedSegment() = default;

  std::vector<std::byte*> bases_;
  std::vector<std::size_t> lengths_;  // size of each rank's memory in bytes
};

// The shared segments that the ranks of a communicator have allocated, all in the same order: region i is the i-th
// segment. Segments after the last entry are not found; their data is then copied, which only costs speed.
class SharedRegions final : public AddressMap {
 public:
  explicit SharedRegions(int rank) : rank_(rank) {}

  // Registers a segment until its memory is freed, and returns this rank's memory.
  static Memory add(const std::shared_ptr<SharedRegions>& regions, std::shared_ptr<SharedSegment> segment,
                    std::int64_t bytes);

  SharedAddress find(const void* data, std::int64_t bytes) const override;
  std::byte* resolve(int rank, const SharedAddress& address) const override;

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
