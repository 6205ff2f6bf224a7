// Computes FarmHash64 of texts of any length: short texts in one step, longer ones in blocks of 64 bytes.
#include "io/datasets/tables/farm_hash.h"

#include <bit>
#include <cstring>
#include <utility>

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little, "FarmHash reads little-endian words");

constexpr std::uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;
constexpr std::size_t block = 64;

template <class Word>
std::uint64_t word_at(const char* s) {
  Word word;
  std::memcpy(&word, s, sizeof(word));
  return word;
}

std::uint64_t at(const char* s) { return word_at<std::uint64_t>(s); }
std::uint64_t shift_mix(std::uint64_t value) { return value ^ (value >> 47); }

std::uint64_t mixed(std::uint64_t u, std::uint64_t v, std::uint64_t multiplier) {
  return shift_mix((v ^ shift_mix((u ^ v) * multiplier)) * multiplier) * multiplier;
}

std::uint64_t up_to_16(const char* s, std::size_t length) {
  const std::uint64_t multiplier = k2 + length * 2;
  if (length >= 8) {
    const std::uint64_t a = at(s) + k2, b = at(s + length - 8);
    return mixed(std::rotr(b, 37) * multiplier + a, (std::rotr(a, 25) + b) * multiplier, multiplier);
  }
  if (length >= 4) {
    const std::uint64_t a = word_at<std::uint32_t>(s), b = word_at<std::uint32_t>(s + length - 4);
    return mixed(length + (a << 3), b, multiplier);
  }
  if (length == 0) return k2;
  const auto byte = [s](std::size_t i) { return std::uint64_t{static_cast<std::uint8_t>(s[i])}; };
  const std::uint64_t y = byte(0) + (byte(length / 2) << 8), z = length + (byte(length - 1) << 2);
  return shift_mix(y * k2 ^ z * k0) * k2;
}

std::uint64_t up_to_32(const char* s, std::size_t length) {
  const std::uint64_t multiplier = k2 + length * 2;
  const std::uint64_t a = at(s) * k1, b = at(s + 8), c = at(s + length - 8) * multiplier, d = at(s + length - 16) * k2;
  return mixed(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, multiplier);
}

std::uint64_t up_to_64(const char* s, std::size_t length) {
  const std::uint64_t multiplier = k2 + length * 2;
  const std::uint64_t a = at(s) * k2, b = at(s + 8), c = at(s + length - 8) * multiplier, d = at(s + length - 16) * k2;
  const std::uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const std::uint64_t z = mixed(y, a + std::rotr(b + k2, 18) + c, multiplier);
  const std::uint64_t e = at(s + 16) * multiplier, f = at(s + 24);
  const std::uint64_t g = (y + at(s + length - 32)) * multiplier, h = (z + at(s + length - 24)) * multiplier;
  return mixed(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, multiplier);
}

// The state of the hash of a text with more than 64 bytes.
struct State {
  using Pair = std::pair<std::uint64_t, std::uint64_t>;

  std::uint64_t x = 81, y = 81 * k1 + 113, z = shift_mix(y * k2 + 113) * k2;
  Pair v{0, 0}, w{0, 0};

  static Pair of_32_bytes(const char* s, std::uint64_t a, std::uint64_t b) {
    a += at(s);
    b = std::rotr(b + a + at(s + 24), 21);
    const std::uint64_t first = a;
    a += at(s + 8) + at(s + 16);
    b += std::rotr(a, 44);
    return {a + at(s + 24), b + first};
  }

  // Adds 64 bytes. `factor` is 1, or 9 for the last block.
  void add(const char* s, std::uint64_t multiplier, std::uint64_t factor) {
    x = std::rotr(x + y + v.first + at(s + 8), 37) * multiplier;
    y = std::rotr(y + v.second + at(s + 48), 42) * multiplier;
    x ^= w.second * factor;
    y += v.first * factor + at(s + 40);
    z = std::rotr(z + w.first, 33) * multiplier;
    v = of_32_bytes(s, v.second * multiplier, x + w.first);
    w = of_32_bytes(s + 32, z + w.second, y + at(s + 16));
    std::swap(z, x);
  }
};

std::uint64_t above_64(const char* s, std::size_t length) {
  State state;
  state.x = state.x * k2 + at(s);
  const std::size_t whole = (length - 1) / block * block, rest = (length - 1) % block;
  for (std::size_t begin = 0; begin < whole; begin += block) state.add(s + begin, k1, 1);
  const std::uint64_t multiplier = k1 + ((state.z & 0xff) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.add(s + length - block, multiplier, 9);
  return mixed(mixed(state.v.first, state.w.first, multiplier) + shift_mix(state.y) * k0 + state.z,
               mixed(state.v.second, state.w.second, multiplier) + state.x, multiplier);
}

}  // namespace

std::uint64_t farm_hash(std::string_view text) {
  const std::size_t length = text.size();
  if (length <= 16) return up_to_16(text.data(), length);
  if (length <= 32) return up_to_32(text.data(), length);
  if (length <= 64) return up_to_64(text.data(), length);
  return above_64(text.data(), length);
}

std::uint64_t combined_hash(std::uint64_t first, std::uint64_t second) {
  constexpr std::uint64_t multiplier = 0xc6a4a7935bd1e995;
  const std::uint64_t both = (first ^ multiplier ^ (shift_mix(second * multiplier) * multiplier)) * multiplier;
  return shift_mix(shift_mix(both) * multiplier);
}

std::int64_t hash_bin(std::string_view word, std::int64_t bins) {
  return static_cast<std::int64_t>(farm_hash(word) % static_cast<std::uint64_t>(bins));
}

}  // namespace trainctl
