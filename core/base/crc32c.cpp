// Computes CRC-32C by table lookup, eight bytes at a time (slicing-by-8).
#include "core/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little);

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: the remainder of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // bits reversed
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t rest = b;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? polynomial : 0);
    tables[0][b] = rest;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t rest = tables[k - 1][b];
      tables[k][b] = rest >> 8 ^ tables[0][rest & 255];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t rest = 0xFFFFFFFF;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    word ^= rest;
    rest = 0;
    for (std::size_t k = 0; k < 8; ++k) rest ^= tables[7 - k][word >> 8 * k & 255];
  }
  for (; bytes > 0; --bytes) rest = rest >> 8 ^ tables[0][(rest ^ *at++) & 255];
  return ~rest;
}

std::uint32_t masked_crc32c(const void* data, std::size_t bytes) {
  const std::uint32_t sum = crc32c(data, bytes);
  return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

}  // namespace trainctl
