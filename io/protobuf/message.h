// Writes messages of protocol buffers in their wire format, without generated code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainctl {

// A message to which fields are appended, encoded as in https://protobuf.dev/programming-guides/encoding. Numbers of
// fields are those of the message's .proto file.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(int field, std::int64_t value);  // int32, int64, enum, bool
  ProtobufMessage& real(int field, float value);
  ProtobufMessage& real(int field, double value);
  ProtobufMessage& text(int field, std::string_view value);  // string, bytes
  // Appends the key and the length of a string, bytes or message field; `bytes` bytes must follow the message so far.
  ProtobufMessage& begin_bytes(int field, std::int64_t bytes);
  ProtobufMessage& message(int field, const ProtobufMessage& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace trainctl
