// Messages of protocol buffers while they are written: the wire format, without generated code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainctl {

// Appends fields as https://protobuf.dev/programming-guides/encoding states them; numbers of fields are those of the
// message's .proto file.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(int field, std::int64_t value);  // int32, int64, enum, bool
  ProtobufMessage& real(int field, float value);
  ProtobufMessage& real(int field, double value);
  ProtobufMessage& text(int field, std::string_view value);  // string, bytes
  // The beginning of a string or bytes field, or of a message: so many bytes must follow what has been appended so far.
  ProtobufMessage& beginning(int field, std::int64_t bytes);
  ProtobufMessage& message(int field, const ProtobufMessage& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace trainctl
