// Writes WAV files for tests.
#pragma once

#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test {

inline std::string chunk(const std::string& id, const std::string& content) {
  return id + little_endian(content.size(), 4) + content + (content.size() % 2 ? std::string(1, '\0') : "");
}

struct WavHeader {
  int channels = 1, rate = 16000, bits = 16;
  int tag = 1;              // 1: PCM, 3: float
  bool extensible = false;  // whether the tag is in an extension
};

// A file of these stored values; `before` are chunks before the values.
inline std::string wav(const WavHeader& header, const std::string& values, const std::string& before = "") {
  const auto field = [](int value, int bytes) { return little_endian(static_cast<std::uint64_t>(value), bytes); };
  const int block = header.channels * header.bits / 8;
  std::string format = field(header.extensible ? 0xfffe : header.tag, 2) + field(header.channels, 2) +
                       field(header.rate, 4) + field(header.rate * block, 4) + field(block, 2) + field(header.bits, 2);
  if (header.extensible) {
    format += field(22, 2) + field(header.bits, 2) + field(0, 4) + field(header.tag, 2) + std::string(14, 'g');
  }
  const std::string chunks = "WAVE" + chunk("fmt ", format) + before + chunk("data", values);
  return "RIFF" + little_endian(chunks.size(), 4) + chunks;
}

// The same for values of 16 bits.
inline std::string wav16(const std::vector<int>& values, int channels = 1, int rate = 16000) {
  std::string stored;
  for (const int value : values) stored += little_endian(static_cast<std::uint64_t>(value), 2);
  return wav({channels, rate, 16}, stored);
}

}  // namespace trainctl::test
