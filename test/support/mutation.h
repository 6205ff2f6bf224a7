// Mutates files for seeded fuzz tests.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

namespace trainctl::test {

// The number of mutations of each file that a test tries: TRAINCTL_MUTATIONS, by default 150.
inline int mutations() {
  const char* text = std::getenv("TRAINCTL_MUTATIONS");
  return text ? std::atoi(text) : 150;
}

// Returns `bytes` with one to four changes: another byte, a flipped bit, a run of one value, a range removed or
// repeated, the end cut off, or a character that has a meaning in JSON and other text formats.
inline std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const int changes = 1 + static_cast<int>(below(4));
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    // The headers, at both ends, are changed more often than the values.
    std::size_t at = below(bytes.size());
    if (random() % 2) at = below(std::min<std::size_t>(128, bytes.size()));
    if (random() % 4 == 0) at = bytes.size() - 1 - below(std::min<std::size_t>(128, bytes.size()));
    const std::size_t length = 1 + below(std::min<std::size_t>(16, bytes.size() - at));
    switch (random() % 7) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.replace(at, length, std::string(length, random() % 2 ? '\xff' : '\0'));
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 5:
        bytes.resize(at);
        break;
      default:
        bytes.replace(at, 1, 1, "0123456789-e.\"{}[]:,"[random() % 20]);
    }
  }
  return bytes;
}

}  // namespace trainctl::test
