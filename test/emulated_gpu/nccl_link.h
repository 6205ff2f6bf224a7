// The memory that the ranks of an emulated NCCL communicator share: a file with a mailbox for each pair of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated {

class Link {
 public:
  static constexpr std::size_t max_ranks = 16, mailbox_bytes = 256 << 10;

  // Returns a name that no other communicator has.
  static std::string unique_name();

  // Opens the file of this name, which the first rank creates and the last rank to arrive unlinks. `device` identifies
  // the GPU of this rank among those of all processes.
  Link(const std::string& name, int ranks, int rank, const std::string& device);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  // Whether all ranks have arrived; no data may be moved before that.
  bool complete() const;
  // Returns an error text if two ranks use the same GPU, or an empty text.
  std::string duplicates() const;

  // Ends all transfers of all ranks.
  void abort();
  bool aborted() const;

  // Move a piece of a message of `bytes` bytes, from byte `at` on, as much as can be moved now. They return the number
  // of bytes. `signature` identifies the call that the message belongs to; `same` becomes false if the ranks disagree
  // on it.
  std::size_t send(int peer, const std::byte* data, std::size_t at, std::size_t bytes, std::uint64_t signature);
  std::size_t receive(int peer, std::byte* data, std::size_t at, std::size_t bytes, std::uint64_t signature,
                      bool& same);

 private:
  struct Mailbox {
    std::atomic<std::uint32_t> full;
    std::uint32_t bytes;
    std::uint64_t signature, total;
    std::byte data[mailbox_bytes];
  };
  struct Shared {
    std::atomic<int> arrived, aborted;
    char devices[max_ranks][64];
    Mailbox mailboxes[];  // [from][to]
  };
  Mailbox& mailbox(int from, int to) const;

  int ranks_, rank_;
  std::size_t bytes_;
  Shared* shared_;
};

}  // namespace emulated
