// A reader of TensorBoard's event files that shares no code with their writer.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test {

inline std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, count);
  return value;
}

// The fields of a message by field number. Values that are numbers are stored as their bytes.
using Fields = std::multimap<int, std::string>;

inline Fields fields_of(const std::string& message) {
  Fields fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t key = varint();
    const int wire = static_cast<int>(key & 7);
    std::string value;
    if (wire == 0) {
      const std::uint64_t number = varint();
      value.assign(reinterpret_cast<const char*>(&number), 8);
    } else {
      const std::size_t length = wire == 1 ? 8 : wire == 5 ? 4 : varint();
      value = message.substr(at, length);
      REQUIRE(value.size() == length);
      at += length;
    }
    fields.emplace(static_cast<int>(key >> 3), value);
  }
  return fields;
}

inline std::string only(const Fields& fields, int number) {
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

// The events of the only file in a folder.
inline std::vector<Fields> events_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
  REQUIRE(files.size() == 1);
  CHECK(std::filesystem::path(files[0]).filename().string().starts_with("events.out.tfevents."));
  const std::string bytes = read_whole(files[0]);
  std::vector<Fields> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = number_at(bytes, at, 8);
    const std::string data = bytes.substr(at + 12, length);
    CHECK(bytes.substr(at, 12 + length + 4) == tf_record(data));
    events.push_back(fields_of(data));
    at += 12 + length + 4;
  }
  return events;
}

// The scalars of an event's summary.
inline std::map<std::string, float> scalars_of(const Fields& event) {
  std::map<std::string, float> scalars;
  const Fields summary = fields_of(only(event, 5));
  for (auto [value, end] = summary.equal_range(1); value != end; ++value) {
    const Fields fields = fields_of(value->second);
    float number = 0;
    std::memcpy(&number, only(fields, 2).data(), 4);
    scalars[only(fields, 1)] = number;
  }
  return scalars;
}

inline std::int64_t step_of(const Fields& event) { return static_cast<std::int64_t>(number_at(only(event, 2), 0, 8)); }

inline double double_at(const std::string& bytes, std::size_t index = 0) {
  double value = 0;
  REQUIRE(bytes.size() >= (index + 1) * sizeof value);
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// A tensorflow.HistogramProto: `counts[i]` is the number of values between `limits[i - 1]` and `limits[i]`.
struct HistogramFields {
  double minimum = 0, maximum = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;
};

// The histograms among events, by step and name.
inline std::map<std::pair<std::int64_t, std::string>, HistogramFields> histograms_in(
    const std::vector<Fields>& events) {
  std::map<std::pair<std::int64_t, std::string>, HistogramFields> found;
  for (const Fields& event : events) {
    if (event.count(5) == 0) continue;
    const Fields value = fields_of(fields_of(only(event, 5)).find(1)->second);
    if (value.count(5) == 0) continue;
    const Fields proto = fields_of(only(value, 5));
    HistogramFields histogram;
    double* const numbers[] = {&histogram.minimum, &histogram.maximum, &histogram.count, &histogram.sum,
                               &histogram.sum_of_squares};
    for (int i = 0; i < 5; ++i) *numbers[i] = double_at(only(proto, i + 1));
    const std::string limits = only(proto, 6), counts = only(proto, 7);
    REQUIRE(limits.size() == counts.size());
    for (std::size_t i = 0; i < limits.size() / 8; ++i) {
      histogram.limits.push_back(double_at(limits, i));
      histogram.counts.push_back(double_at(counts, i));
    }
    const bool added = found.emplace(std::pair(step_of(event), only(value, 1)), histogram).second;
    CHECK(added);
  }
  return found;
}

// A summary for one of TensorBoard's plugins that read strings.
struct StringFields {
  std::string plugin;
  std::uint64_t data_class = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::string> strings;
};

// The summaries of strings among events, by step and name.
inline std::map<std::pair<std::int64_t, std::string>, StringFields> strings_in(const std::vector<Fields>& events) {
  std::map<std::pair<std::int64_t, std::string>, StringFields> found;
  for (const Fields& event : events) {
    if (event.count(5) == 0) continue;
    const Fields value = fields_of(fields_of(only(event, 5)).find(1)->second);
    if (value.count(8) == 0) continue;
    const Fields metadata = fields_of(only(value, 9)), tensor = fields_of(only(value, 8));
    StringFields strings;
    strings.plugin = only(fields_of(only(metadata, 1)), 1);
    strings.data_class = number_at(only(metadata, 4), 0, 8);
    CHECK(number_at(only(tensor, 1), 0, 8) == 7);
    const Fields shape = fields_of(only(tensor, 2));
    for (auto [size, end] = shape.equal_range(2); size != end; ++size) {
      strings.shape.push_back(static_cast<std::int64_t>(number_at(only(fields_of(size->second), 1), 0, 8)));
    }
    for (auto [text, end] = tensor.equal_range(8); text != end; ++text) strings.strings.push_back(text->second);
    found.emplace(std::pair(step_of(event), only(value, 1)), strings);
  }
  return found;
}

}  // namespace trainctl::test
