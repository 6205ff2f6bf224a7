// Shares memory between processes through memfd and /proc.
#include "parallel/comm/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/format.h"

namespace trainctl {

namespace {

// The information with which the other ranks find a rank's segment.
struct Handle {
  std::int64_t process = 0;
  std::int64_t file = -1;
  std::uint64_t inode = 0;
  std::size_t length = 0;
};

std::uint64_t inode_of(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

// Maps a rank's own pages at once. Pages of another rank are mapped when this rank first uses them, since most of them
// are used by that rank alone, and the system counts each mapped page as memory of each process.
std::byte* map(int file, std::size_t length, bool is_own) {
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | (is_own ? MAP_POPULATE : 0), file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// Returns the minimum of all ranks' values.
int agree(MPI_Comm host, int value) {
  int least = 0;
  check_mpi(MPI_Allreduce(&value, &least, 1, MPI_INT, MPI_MIN, host), "agreeing on shared memory");
  return least;
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::create(MPI_Comm host, std::int64_t bytes, std::string& why) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(host, &rank);
  MPI_Comm_size(host, &size);
  const std::shared_ptr<SharedSegment> segment(new SharedSegment);
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  segment->bases_.resize(size);
  segment->lengths_.resize(size);

  constexpr const char* name = "trainctl";
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) why = format("memfd_create: {}", std::strerror(errno));
  // Each rank allocates its own pages now, so that they are on its NUMA node, and a shortage is an error instead of a
  // signal.
  const int shortage = file < 0 ? 0 : posix_fallocate(file, 0, static_cast<off_t>(length));
  if (agree(host, shortage ? 0 : 1) == 0) {
    if (file >= 0) close(file);
    throw Error(ErrorKind::resource,
                format("cannot allocate {} bytes of memory shared by the ranks of this host, the file memfd:{}{}{}",
                       bytes, name, shortage ? ": " : " (on another rank)", shortage ? std::strerror(shortage) : ""),
                shortage == EFBIG ? "raise the limit of the file size (ulimit -f)" : "");
  }

  const Handle own{getpid(), file, inode_of(file), length};
  std::vector<Handle> handles(size);
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, handles.data(), sizeof own, MPI_BYTE, host), "sharing memory");
  bool complete = true;
  for (int peer = 0; peer < size; ++peer) {
    const Handle& handle = handles[peer];
    segment->lengths_[peer] = handle.length;
    int opened = file;
    if (peer != rank) opened = open(format("/proc/{}/fd/{}", handle.process, handle.file).c_str(), O_RDWR | O_CLOEXEC);
    // A different file means that the processes see different process ids, as in separate containers.
    if (opened >= 0 && inode_of(opened) == handle.inode) {
      segment->bases_[peer] = map(opened, handle.length, peer == rank);
    }
    if (!segment->bases_[peer]) {
      if (why.empty()) why = format("cannot map the memory of local rank {}: {}", peer, std::strerror(errno));
      complete = false;
    }
    if (opened >= 0 && peer != rank) close(opened);
  }
  complete = agree(host, complete ? 1 : 0) == 1;  // also ensures that all ranks have opened a file before it is closed
  if (file >= 0) close(file);
  return complete ? segment : nullptr;
}

SharedSegment::~SharedSegment() {
  for (std::size_t rank = 0; rank < bases_.size(); ++rank) {
    if (bases_[rank]) munmap(bases_[rank], lengths_[rank]);
  }
}

Memory SharedRegions::add(const std::shared_ptr<SharedRegions>& regions, std::shared_ptr<SharedSegment> segment,
                          std::int64_t bytes) {
  std::byte* begin = segment->bases()[regions->rank_];
  const int index = regions->used_.load();
  Region* region = nullptr;
  if (index < static_cast<int>(regions->regions_.size())) {
    region = &regions->regions_[index];
    region->bytes = bytes;
    region->bases = segment->bases();
    region->begin.store(begin);
    regions->used_.store(index + 1, std::memory_order_release);
  }
  // The deleter owns the mapping and the list of regions.
  const auto forget = [regions, region, segment = std::move(segment)](std::byte*) {
    if (region) region->begin.store(nullptr);
  };
  return {{begin, forget}, bytes};
}

SharedAddress SharedRegions::find(const void* data, std::int64_t bytes) const {
  const auto* address = static_cast<const std::byte*>(data);
  const int used = used_.load(std::memory_order_acquire);
  for (int index = 0; index < used; ++index) {
    const Region& region = regions_[index];
    const std::byte* begin = region.begin.load(std::memory_order_acquire);
    if (begin && address >= begin && address + bytes <= begin + region.bytes) return {index, address - begin};
  }
  return {};
}

std::byte* SharedRegions::resolve(int rank, const SharedAddress& address) const {
  return regions_[address.region].bases[rank] + address.offset;
}

}  // namespace trainctl
