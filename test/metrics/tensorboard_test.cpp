// TensorBoard's files: frames, check sums and fields, read by a reader of their own.
#include <cstring>
#include <filesystem>
#include <map>

#include "io/metrics/tensorboard/tensorboard.h"
#include "test/catch.h"
#include "test/data/files.h"
#include "test/data/records.h"

namespace trainctl::test::tensorboard_test {
namespace {

namespace fs = std::filesystem;

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, count);
  return value;
}

// The fields of a message by their numbers; numbers as their bytes.
using Fields = std::multimap<int, std::string>;

Fields fields_of(const std::string& message) {
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

std::string only(const Fields& fields, int number) {
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

// The events of the only file in a folder.
std::vector<Fields> events_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().string());
  REQUIRE(files.size() == 1);
  CHECK(fs::path(files[0]).filename().string().starts_with("events.out.tfevents."));
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
std::map<std::string, float> scalars_of(const Fields& event) {
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

std::int64_t step_of(const Fields& event) { return static_cast<std::int64_t>(number_at(only(event, 2), 0, 8)); }

}  // namespace

TEST_CASE("TensorBoard's files hold a run's curves, training and validation apart") {
  const TempFolder folder;
  {
    TensorBoard board(folder / "board", "name: tried\n", "a graph", Duration::steps(10));
    StartEvent start;
    start.first_step = 300;
    board.start(start);
    GpuReading reading;
    reading.utilization = 0.75;
    const std::vector<GpuSample> gpus = {{1, reading}};
    for (int step = 301; step <= 315; ++step) board.step({step, step / 100.0, 1.0 / step, 0.1, 500, 3.5, 0.25, gpus});
    EpochEvent epoch;
    epoch.step = 315;
    epoch.train = {{"loss", 0.5}, {"accuracy", 0.875}};
    epoch.validation = {{"loss", 0.625}};
    board.epoch(epoch);
  }
  const std::vector<Fields> training = events_in(folder / "board/train");
  REQUIRE(training.size() == 6);
  CHECK(only(training[0], 3) == "brain.Event:2");
  double wall = 0;
  std::memcpy(&wall, only(training[0], 1).data(), 8);
  CHECK(std::abs(wall - static_cast<double>(std::time(nullptr))) < 600);
  CHECK(step_of(training[1]) == 301);  // what other files hold from there on is void
  CHECK(number_at(only(fields_of(only(training[1], 7)), 1), 0, 8) == 1);
  CHECK(only(training[2], 4) == "a graph");
  const Fields text = fields_of(only(fields_of(only(training[3], 5)), 1));
  CHECK(only(text, 1) == "config");
  CHECK(only(fields_of(only(text, 8)), 8) == "```\nname: tried\n```\n");
  CHECK(only(fields_of(only(fields_of(only(text, 9)), 1)), 1) == "text");
  CHECK(step_of(training[4]) == 310);
  const std::map<std::string, float> step = scalars_of(training[4]);
  CHECK(step == std::map<std::string, float>{{"communication_share", 0},
                                             {"data_wait_share", 0.25f},
                                             {"gpu/1/utilization", 0.75f},
                                             {"gradient_norm", 3.5f},
                                             {"learning_rate", 0.1f},
                                             {"loss", static_cast<float>(1.0 / 310)},
                                             {"samples_per_second", 500}});
  CHECK(step_of(training[5]) == 315);
  CHECK(scalars_of(training[5]) == std::map<std::string, float>{{"epoch_accuracy", 0.875f}, {"epoch_loss", 0.5f}});
  const std::vector<Fields> validation = events_in(folder / "board/validation");
  REQUIRE(validation.size() == 3);
  CHECK(step_of(validation[2]) == 315);
  CHECK(scalars_of(validation[2]) == std::map<std::string, float>{{"epoch_loss", 0.625f}});
}

}  // namespace trainctl::test::tensorboard_test
