// Writers of TFRecord files and tar archives that share no code with the readers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace trainctl::test {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

// CRC-32C, computed bit by bit.
inline std::uint32_t slow_crc32c(const std::string& bytes) {
  std::uint32_t rest = 0xFFFFFFFF;
  for (const char byte : bytes) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? rest >> 1 ^ 0x82F63B78 : rest >> 1;
  }
  return ~rest;
}

inline std::string masked_crc(const std::string& bytes) {
  const std::uint32_t crc = slow_crc32c(bytes);
  return little_endian(static_cast<std::uint32_t>((crc >> 15 | crc << 17) + 0xA282EAD8u), 4);
}

inline std::string tf_record(const std::string& data) {
  const std::string length = little_endian(data.size(), 8);
  return length + masked_crc(length) + data + masked_crc(data);
}

// Writers of the wire format of protocol buffers.
inline std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  return text + static_cast<char>(value);
}
inline std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
inline std::string bytes_feature(const std::string& bytes) { return field(1, field(1, bytes)); }
inline std::string ints_feature(const std::vector<std::int64_t>& values, bool packed = true) {
  std::string all, alone;
  for (const std::int64_t value : values) {
    all += varint(static_cast<std::uint64_t>(value));
    alone += varint(1 << 3) + varint(static_cast<std::uint64_t>(value));
  }
  return field(3, packed ? field(1, all) : alone);
}
inline std::string floats_feature(const std::vector<float>& values, bool packed = true) {
  std::string all, alone;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    all += little_endian(bits, 4);
    alone += varint(1 << 3 | 5) + little_endian(bits, 4);
  }
  return field(2, packed ? field(1, all) : alone);
}
// A tf.train.Example.
inline std::string example(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string map;
  for (const auto& [name, feature] : features) map += field(1, field(1, name) + field(2, feature));
  return field(1, map);
}

// A member of a tar archive in POSIX's ustar format; `prefix` goes before the name.
inline std::string tar_member(const std::string& name, const std::string& content, char type = '0',
                              const std::string& prefix = "") {
  const auto octal = [](std::uint64_t value, int digits) {
    std::string text(static_cast<std::size_t>(digits), '0');
    for (std::size_t i = text.size(); i-- > 0; value >>= 3) text[i] = static_cast<char>('0' + (value & 7));
    return text + '\0';
  };
  const auto padded = [](std::string text, std::size_t bytes) {
    text.resize(bytes);
    return text;
  };
  std::string header = padded(name, 100) + octal(0644, 7) + octal(0, 7) + octal(0, 7) + octal(content.size(), 11) +
                       octal(1700000000, 11) + std::string(8, ' ') + type + padded("", 100) +
                       std::string(
                           "ustar\0"
                           "00",
                           8) +
                       padded("root", 32) + padded("root", 32) + octal(0, 7) + octal(0, 7) + padded(prefix, 155);
  header.resize(512);
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  header.replace(148, 8, octal(sum, 6) + ' ');
  return header + padded(content, (content.size() + 511) / 512 * 512);
}
// The two empty blocks that end an archive.
inline std::string tar_end() { return std::string(1024, '\0'); }
// A record of a pax header.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) ++length;
  return std::to_string(length) + ' ' + key + '=' + value + '\n';
}

}  // namespace trainctl::test
