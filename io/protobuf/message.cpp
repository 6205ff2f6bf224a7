// The wire format of protocol buffers.
#include "io/protobuf/message.h"

#include <bit>
#include <cstring>

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little);

enum Wire : std::uint32_t { of_varint = 0, of_64_bits = 1, of_length = 2, of_32_bits = 5 };

std::uint64_t key(int field, Wire wire) { return static_cast<std::uint64_t>(field) << 3 | wire; }

template <class T>
void append_bytes(std::string& bytes, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

}  // namespace

void ProtobufMessage::varint(std::uint64_t value) {
  for (; value > 127; value >>= 7) bytes_ += static_cast<char>(value | 128);
  bytes_ += static_cast<char>(value);
}

ProtobufMessage& ProtobufMessage::integer(int field, std::int64_t value) {
  varint(key(field, of_varint));
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::real(int field, float value) {
  varint(key(field, of_32_bits));
  append_bytes(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::real(int field, double value) {
  varint(key(field, of_64_bits));
  append_bytes(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::text(int field, std::string_view value) {
  beginning(field, static_cast<std::int64_t>(value.size()));
  bytes_ += value;
  return *this;
}

ProtobufMessage& ProtobufMessage::beginning(int field, std::int64_t bytes) {
  varint(key(field, of_length));
  varint(static_cast<std::uint64_t>(bytes));
  return *this;
}

}  // namespace trainctl
