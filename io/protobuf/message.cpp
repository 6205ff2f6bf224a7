// Encodes fields in the wire format of protocol buffers.
#include "io/protobuf/message.h"

#include <bit>
#include <cstring>

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little);

enum WireType : std::uint32_t { varint_type = 0, fixed64_type = 1, length_type = 2, fixed32_type = 5 };

std::uint64_t key(int field, WireType wire) { return static_cast<std::uint64_t>(field) << 3 | wire; }

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
  varint(key(field, varint_type));
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::real(int field, float value) {
  varint(key(field, fixed32_type));
  append_bytes(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::real(int field, double value) {
  varint(key(field, fixed64_type));
  append_bytes(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::text(int field, std::string_view value) {
  begin_bytes(field, static_cast<std::int64_t>(value.size()));
  bytes_ += value;
  return *this;
}

ProtobufMessage& ProtobufMessage::begin_bytes(int field, std::int64_t bytes) {
  varint(key(field, length_type));
  varint(static_cast<std::uint64_t>(bytes));
  return *this;
}

}  // namespace trainctl
