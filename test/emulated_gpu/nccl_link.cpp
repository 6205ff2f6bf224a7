// Implements the memory that the ranks of an emulated NCCL communicator share.
#include "test/emulated_gpu/nccl_link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace emulated {

std::string Link::unique_name() {
  std::random_device random;
  char name[64];
  std::snprintf(name, sizeof name, "/trainctl-emulated-nccl-%08x%08x", random(), random());
  return name;
}

Link::Link(const std::string& name, int ranks, int rank, const std::string& device)
    : ranks_(ranks),
      rank_(rank),
      bytes_(sizeof(Shared) + static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * sizeof(Mailbox)) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_)) != 0) std::abort();
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) std::abort();
  shared_ = static_cast<Shared*>(memory);  // a new file is zero
  std::snprintf(shared_->devices[rank], sizeof shared_->devices[rank], "%s", device.c_str());
  if (shared_->arrived.fetch_add(1) + 1 == ranks) shm_unlink(name.c_str());
}

Link::~Link() { munmap(shared_, bytes_); }

bool Link::complete() const { return shared_->arrived.load() >= ranks_; }

std::string Link::duplicates() const {
  for (int a = 0; a < ranks_; ++a) {
    for (int b = a + 1; b < ranks_; ++b) {
      if (std::strcmp(shared_->devices[a], shared_->devices[b]) != 0) continue;
      return "Duplicate GPU detected : rank " + std::to_string(a) + " and rank " + std::to_string(b) +
             " both on CUDA device " + shared_->devices[a];
    }
  }
  return "";
}

void Link::abort() { shared_->aborted = 1; }
bool Link::aborted() const { return shared_->aborted.load() != 0; }

Link::Mailbox& Link::mailbox(int from, int to) const { return shared_->mailboxes[from * ranks_ + to]; }

std::size_t Link::send(int peer, const std::byte* data, std::size_t at, std::size_t bytes, std::uint64_t signature) {
  Mailbox& box = mailbox(rank_, peer);
  if (box.full.load(std::memory_order_acquire) != 0) return 0;
  const std::size_t length = std::min(bytes - at, mailbox_bytes);
  box.bytes = static_cast<std::uint32_t>(length);
  box.signature = signature;
  box.total = bytes;
  std::memcpy(box.data, data + at, length);
  box.full.store(1, std::memory_order_release);
  return length;
}

std::size_t Link::receive(int peer, std::byte* data, std::size_t at, std::size_t bytes, std::uint64_t signature,
                          bool& same) {
  Mailbox& box = mailbox(peer, rank_);
  if (box.full.load(std::memory_order_acquire) == 0) return 0;
  same = box.signature == signature && box.total == bytes && box.bytes <= bytes - at;
  if (!same) return 0;
  const std::size_t length = box.bytes;
  std::memcpy(data + at, box.data, length);
  box.full.store(0, std::memory_order_release);
  return length;
}

}  // namespace emulated
