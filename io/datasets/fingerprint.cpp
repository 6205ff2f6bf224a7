// Hashes the contents of files, and reads a limited number of bytes of them.
#include "io/datasets/fingerprint.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/hash.h"
#include "core/base/random.h"

namespace trainctl {
namespace {

constexpr std::int64_t read_in_full = 256 << 20;  // bytes up to which all content is read

// Divides [0, range) into `count` equal intervals and returns a number drawn at random from interval i, or i itself if
// range is at most `count`. The result depends on the arguments only.
std::int64_t sampled(std::int64_t i, std::int64_t count, std::int64_t range) {
  if (range <= count) return i;
  const auto at = [&](std::int64_t k) { return static_cast<std::int64_t>(static_cast<__int128>(range) * k / count); };
  const RandomKey key{static_cast<std::uint64_t>(range), Purpose::fingerprint};
  const std::uint64_t word = key.block(static_cast<std::uint64_t>(i))[0];
  return at(i) + static_cast<std::int64_t>(word * static_cast<std::uint64_t>(at(i + 1) - at(i)) >> 32);
}

std::uint64_t hash_of(const std::vector<std::uint64_t>& hashes) {
  return xxh3(hashes.data(), hashes.size() * sizeof hashes[0]);
}

}  // namespace

std::uint64_t content_hash(const Bytes& bytes) {
  constexpr std::int64_t piece = 256 << 10, pieces = 256;
  const std::int64_t all_pieces = (bytes.size() + piece - 1) / piece;
  const std::int64_t count = bytes.size() <= read_in_full ? all_pieces : pieces;
  std::vector<std::uint64_t> hashes{static_cast<std::uint64_t>(bytes.size())};
  std::vector<std::byte> buffer;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t offset = sampled(i, count, all_pieces) * piece;
    const std::int64_t length = std::min(piece, bytes.size() - offset);
    const std::byte* memory = bytes.in_memory() ? bytes.in_memory() + offset : nullptr;
    if (!memory) {
      buffer.resize(static_cast<std::size_t>(length));
      bytes.read(offset, buffer.data(), length);
      memory = buffer.data();
    }
    hashes.push_back(xxh3(memory, static_cast<std::size_t>(length)));
  }
  return hash_of(hashes);
}

std::uint64_t content_hash(const FileContents& files) {
  constexpr std::int64_t max_files = 65536, sample = 4096, max_bytes_of_file = 4 << 20;
  constexpr std::uint64_t unreadable = ~std::uint64_t{0};
  const std::int64_t checked_files = files.count <= max_files ? files.count : sample;
  std::vector<std::uint64_t> hashes{static_cast<std::uint64_t>(files.count)};
  std::vector<std::byte> buffer;
  std::int64_t read = 0;
  // Files are visited in an order that visits each once and alternates between the classes: if the byte limit leaves
  // out content, it leaves out some of every class.
  std::int64_t step = std::max<std::int64_t>(1, checked_files * 5 / 8);
  while (std::gcd(step, checked_files) > 1) ++step;
  for (std::int64_t i = 0; i < checked_files; ++i) {
    const std::int64_t number = sampled(i * step % checked_files, checked_files, files.count);
    try {
      const InputFile file(files.path(number));
      hashes.push_back(static_cast<std::uint64_t>(file.size()));
      const std::int64_t length = std::min(file.size(), max_bytes_of_file);
      if (read + length > read_in_full) continue;
      buffer.resize(static_cast<std::size_t>(length));
      file.read(0, buffer.data(), length);
      hashes.push_back(xxh3(buffer.data(), buffer.size()));
      read += length;
    } catch (const Error& error) {
      if (!files.skip_unreadable || error.kind() != ErrorKind::data) throw;
      hashes.push_back(unreadable);
    }
  }
  return hash_of(hashes);
}

}  // namespace trainctl
