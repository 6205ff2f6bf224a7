// Reads tf.train.Example messages in the wire format of protocol buffers (protobuf.dev/programming-guides/encoding).
#include "io/datasets/records/tf_example.h"

#include <bit>

namespace trainctl {
namespace {

constexpr std::int64_t longest_name = 1024;

enum Wire : std::uint32_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

bool read_varint(Cursor& cursor, std::int64_t end, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    std::uint8_t byte = 0;
    if (cursor.at() >= end || !cursor.read(&byte, 1)) return false;
    value |= std::uint64_t{byte & 127u} << shift;
    if (byte < 128) return true;
  }
  return false;
}

bool read_span(Cursor& cursor, std::int64_t end, Span& span) {
  std::uint64_t length = 0;
  if (!read_varint(cursor, end, length) || length > static_cast<std::uint64_t>(end - cursor.at())) return false;
  span = {cursor.at(), cursor.at() + static_cast<std::int64_t>(length)};
  return true;
}

// Moves past the value of a field.
bool skip(Cursor& cursor, std::int64_t end, std::uint32_t wire) {
  std::uint64_t number = 0;
  Span span;
  switch (wire) {
    case varint:
      return read_varint(cursor, end, number);
    case delimited:
      if (!read_span(cursor, end, span)) return false;
      cursor.seek(span.end);
      return true;
    case fixed32:
    case fixed64: {
      const std::int64_t bytes = wire == fixed32 ? 4 : 8;
      if (end - cursor.at() < bytes) return false;
      cursor.seek(cursor.at() + bytes);
      return true;
    }
    default:
      return false;
  }
}

// Calls field(number, wire type, wrong) at the value of every field of a message. field() returns whether it has read
// the value and moved past it; otherwise the value is skipped. It sets `wrong` if the value is invalid. Returns false
// if the message is invalid.
template <class Field>
bool for_each_field(Cursor& cursor, Span message, Field field) {
  cursor.seek(message.begin);
  while (cursor.at() < message.end) {
    std::uint64_t tag = 0;
    if (!read_varint(cursor, message.end, tag) || tag >> 3 == 0 || tag >> 32 != 0) return false;
    bool wrong = false;
    const bool taken = field(static_cast<std::uint32_t>(tag >> 3), static_cast<std::uint32_t>(tag & 7), wrong);
    if (wrong || (!taken && !skip(cursor, message.end, static_cast<std::uint32_t>(tag & 7)))) return false;
  }
  return true;
}

// Calls inner(span) for every message in field `number`, and then moves past the message.
template <class Inner>
bool for_each_message(Cursor& cursor, Span message, std::uint32_t number, Inner inner) {
  return for_each_field(cursor, message, [&](std::uint32_t field, std::uint32_t wire, bool& wrong) {
    if (field != number || wire != delimited) return false;
    Span span;
    wrong = !read_span(cursor, message.end, span) || !inner(span);
    if (!wrong) cursor.seek(span.end);
    return true;
  });
}

bool read_fixed32(Cursor& cursor, std::int64_t end, float& value) {
  static_assert(std::endian::native == std::endian::little);
  return end - cursor.at() >= 4 && cursor.read(&value, 4);
}

// Reads the values of a list: bytes, or numbers, which may be packed.
bool read_list(Cursor& cursor, Span list, std::int64_t max_values, TfFeature& value) {
  const auto take = [&](std::int64_t end) {
    if (value.count() == max_values) return false;
    if (value.kind == TfFeature::Kind::floats) return read_fixed32(cursor, end, value.floats.emplace_back());
    std::uint64_t number = 0;
    if (!read_varint(cursor, end, number)) return false;
    value.integers.push_back(static_cast<std::int64_t>(number));
    return true;
  };
  const std::uint32_t alone = value.kind == TfFeature::Kind::floats ? fixed32 : varint;
  return for_each_field(cursor, list, [&](std::uint32_t field, std::uint32_t wire, bool& wrong) {
    if (field != 1 || (wire != delimited && wire != alone)) return false;
    if (wire == alone && value.kind != TfFeature::Kind::bytes) {
      wrong = !take(list.end);
      return true;
    }
    Span span;
    wrong = wire != delimited || !read_span(cursor, list.end, span);
    if (wrong) return true;
    if (value.kind == TfFeature::Kind::bytes) {
      wrong = value.count() == max_values;
      value.bytes.push_back(span);
    } else {
      while (!wrong && cursor.at() < span.end) wrong = !take(span.end);
    }
    if (!wrong) cursor.seek(span.end);
    return true;
  });
}

}  // namespace

bool for_each_feature(Cursor& cursor, Span example, const std::function<void(std::string_view, Span)>& visit) {
  std::string name;
  const auto entry = [&](Span map_entry) {
    name.clear();
    Span value;
    bool long_name = false;
    const bool good = for_each_field(cursor, map_entry, [&](std::uint32_t field, std::uint32_t wire, bool& wrong) {
      if ((field != 1 && field != 2) || wire != delimited) return false;
      Span span;
      wrong = !read_span(cursor, map_entry.end, span);
      if (wrong) return true;
      if (field == 2) {
        value = span;
      } else {
        long_name = span.size() > longest_name;
        name.resize(long_name ? 0 : static_cast<std::size_t>(span.size()));
        wrong = !cursor.read(name.data(), std::ssize(name));
      }
      if (!wrong) cursor.seek(span.end);
      return true;
    });
    if (good && !long_name) visit(name, value);
    return good;
  };
  return for_each_message(cursor, example, 1,
                          [&](Span features) { return for_each_message(cursor, features, 1, entry); });
}

bool read_feature(Cursor& cursor, Span feature, std::int64_t max_values, TfFeature& value) {
  value = {};
  return for_each_field(cursor, feature, [&](std::uint32_t field, std::uint32_t wire, bool& wrong) {
    if (field < 1 || field > 3 || wire != delimited) return false;
    const auto kind = static_cast<TfFeature::Kind>(field);
    if (kind != value.kind) value = {.kind = kind};
    Span list;
    wrong = !read_span(cursor, feature.end, list) || !read_list(cursor, list, max_values, value);
    if (!wrong) cursor.seek(list.end);
    return true;
  });
}

}  // namespace trainctl
