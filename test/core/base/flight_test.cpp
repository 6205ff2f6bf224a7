// Tests flight records: what is written is read, also from another thread or process, after SIGKILL and from files that
// are cut off.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/base/flight_state.h"
#include "core/base/format.h"
#include "core/base/utf8.h"
#include "test/catch.h"

namespace trainctl::flight_test {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
  std::string path = (fs::temp_directory_path() / "flight-XXXXXX").string();

  TemporaryFolder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// An entry whose fields all follow from its number, so that a mixture of two entries is noticed.
struct Numbered {
  std::string text;
  FlightEntry entry;

  explicit Numbered(std::uint64_t i) : text(format("{}:{}", i, std::string(i % 70, static_cast<char>('a' + i % 26)))) {
    entry = {.activity = static_cast<Activity>(i % 10),
             .step = static_cast<std::int64_t>(3 * i),
             .number = static_cast<std::int32_t>(i),
             .text = text,
             .message = static_cast<FlightMessage>(i % 3),
             .peer = static_cast<std::int32_t>(7 * i % 1000)};
  }
};

bool same(const FlightEvent& event, const FlightEntry& entry) {
  return event.activity == entry.activity && event.step == entry.step && event.number == entry.number &&
         event.text == entry.text && event.message == entry.message && event.peer == entry.peer;
}

// Whether the events of a line are consecutive numbered entries without a gap, in the order of time.
bool are_consecutive(const FlightHistory& line) {
  const std::uint64_t first = line.entered - line.events.size();
  for (std::size_t i = 0; i < line.events.size(); ++i) {
    const FlightEvent& event = line.events[i];
    if (!same(event, Numbered(first + i).entry)) return false;
    const bool is_last = i + 1 == line.events.size();
    if (!is_last && event.end != line.events[i + 1].begin && event.end != 0) return false;
    if (!is_last && event.begin > line.events[i + 1].begin) return false;
  }
  return true;
}

std::string random_text(std::mt19937& random) {
  static const char* const characters[] = {"a", "/", "é", "漢", "𝄞", " "};
  std::string text;
  for (int left = static_cast<int>(random() % 60); left > 0; --left) text += characters[random() % 6];
  return text;
}

// The longest beginning of a text of whole characters that fits.
std::string fitting(const std::string& text) {
  std::string fits;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_length(rest);
    if (fits.size() + length > flight_text_bytes) break;
    fits += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return fits;
}

TEST_CASE("a record holds what was entered last, with its times and texts") {
  const TemporaryFolder folder;
  std::mt19937 random(std::random_device{}());
  FlightRecord record(folder.path, 3, 8, "node-1");
  FlightLine line = record.line(FlightThread::communication, "communicator 1", {.first = 1, .stride = 2, .count = 4});
  std::deque<FlightEvent> expected;
  const int entries = 1500 + static_cast<int>(random() % 2000);
  const std::int64_t begin = flight_clock();
  for (int i = 0; i < entries; ++i) {
    FlightEvent event{.activity = static_cast<Activity>(random() % 10),
                      .step = static_cast<std::int64_t>(random() % 100000) - 1,
                      .number = static_cast<std::int32_t>(random()),
                      .text = random_text(random),
                      .message = static_cast<FlightMessage>(random() % 3),
                      .peer = static_cast<std::int32_t>(random() % 64) - 1};
    line.enter({event.activity, event.step, event.number, event.text, event.message, event.peer});
    event.text = fitting(event.text);
    expected.push_back(event);
  }
  const FlightState state = read_flight_record(record.path());
  CHECK(record.path() == folder.path + "/rank-00003");
  CHECK(state.rank == 3);
  CHECK(state.ranks == 8);
  CHECK(state.process == getpid());
  CHECK(state.host == "node-1");
  REQUIRE(state.lines.size() == 2);  // and the line of the main thread
  const FlightHistory& read = state.lines[1];
  CHECK(read.name == "communicator 1");
  CHECK(read.group == FlightGroup{1, 2, 4});
  CHECK(read.entered == static_cast<std::uint64_t>(entries));
  REQUIRE(read.events.size() >= 1000);
  std::int64_t last = begin;
  for (std::size_t i = 0; i < read.events.size(); ++i) {
    FlightEvent event = read.events[read.events.size() - 1 - i];
    CHECK(event.under_way() == (i == 0));
    event.begin = event.end = 0;
    CHECK(event == expected[expected.size() - 1 - i]);
  }
  for (const FlightEvent& event : read.events) {
    CHECK(event.begin >= last);
    last = event.begin;
  }
  line.leave();
  const FlightEvent ended = read_flight_record(record.path()).lines[1].events.back();
  CHECK(ended.end >= ended.begin);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  CHECK(std::abs(1e-9 * static_cast<double>(ended.end + state.wall_offset) - now) < 5);
  CHECK((fs::status(record.path()).permissions() & fs::perms(0077)) == fs::perms::none);
}

TEST_CASE("a record is read while a thread writes it") {
  const TemporaryFolder folder;
  FlightRecord record(folder.path, 0, 1, "here");
  std::atomic<bool> stop{false}, writes{false};
  std::jthread writer([&] {
    FlightLine line = record.line(FlightThread::communication, "numbered");
    for (std::uint64_t i = 0; !stop; ++i) {
      line.enter(Numbered(i).entry);
      writes = true;
    }
  });
  while (!writes) std::this_thread::yield();
  std::uint64_t before = 0, events = 0;
  bool good = true;
  for (int i = 0; i < 300; ++i) {
    const FlightState state = read_flight_record(record.path(), i % 3 == 0 ? FlightEvents::last : FlightEvents::all);
    for (const FlightHistory& line : state.lines) {
      if (line.name != "numbered") continue;
      good = good && are_consecutive(line) && line.entered >= before;
      before = line.entered;
      events += line.events.size();
    }
  }
  stop = true;
  CHECK(good);
  INFO(before << " events were entered");
  CHECK(events > 0);
}

TEST_CASE("a record survives a process that is killed while it writes") {
  const TemporaryFolder folder;
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      FlightRecord record(folder.path, 2, 4, "here");
      FlightLine line = record.line(FlightThread::communication, "numbered");
      for (std::uint64_t i = 0;; ++i) line.enter(Numbered(i).entry);
    }
    const std::string path = folder.path + "/" + flight_file_name(2);
    const auto entered = [&] {
      try {
        const FlightState state = read_flight_record(path, FlightEvents::last);
        return state.process == child && state.lines.size() == 2 ? state.lines[1].entered : 0;
      } catch (const Error&) {  // not there yet
        return std::uint64_t{0};
      }
    };
    while (entered() < 100) usleep(100);
    usleep(random() % 3000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const FlightState state = read_flight_record(path);
    CHECK(state.process == child);
    CHECK(state.lines[1].events.size() >= 99);
    CHECK(state.lines[1].events.back().under_way());
    CHECK(are_consecutive(state.lines[1]));
  }
}

TEST_CASE("damaged, foreign and missing records are refused") {
  const TemporaryFolder folder;
  std::mt19937 random(std::random_device{}());
  std::string path;
  {
    FlightRecord record(folder.path, 0, 1, "here");
    FlightLine line = record.line(FlightThread::data, "numbered");
    for (std::uint64_t i = 0; i < 300; ++i) line.enter(Numbered(i).entry);
    path = record.path();
  }
  const std::string whole = bytes_of(path);
  CHECK_NOTHROW(read_flight_record(path));
  for (int i = 0; i < 200; ++i) {
    write(path, whole.substr(0, i == 0 ? 0 : random() % (whole.size() - 64)));
    CHECK_THROWS_AS(read_flight_record(path), Error);
  }
  for (int i = 0; i < 300; ++i) {  // any bytes are read, or refused with an Error
    std::string damaged = whole;
    for (int byte = 0; byte < 8; ++byte)
      damaged[random() % (i % 2 == 0 ? 400 : whole.size())] = static_cast<char>(random());
    write(path, damaged);
    try {
      read_flight_record(path);
    } catch (const Error&) {
    }
  }
  write(path, std::string(100000, 'x'));
  CHECK_THROWS_WITH(read_flight_record(path), Catch::Matchers::Contains("no flight record"));
  CHECK_THROWS_AS(read_flight_record(folder.path + "/absent"), Error);
  CHECK_THROWS_AS(FlightRecord(folder.path + "/absent", 0, 1, "here"), Error);
}

TEST_CASE("lines are used again once their owners have ended, and surplus lines are dropped") {
  const TemporaryFolder folder;
  FlightRecord record(folder.path, 0, 1, "here");
  std::vector<FlightLine> lines;
  for (int i = 0; i < 40; ++i) lines.push_back(record.line(FlightThread::data, format("line {}", i)));
  for (FlightLine& line : lines) line.enter({.text = "one"});  // lines without room drop it
  CHECK(read_flight_record(record.path()).lines.size() == 32);
  lines.clear();
  FlightLine again = record.line(FlightThread::data, "again");
  again.enter({.text = "two"});
  const FlightState state = read_flight_record(record.path());
  const auto found =
      std::find_if(state.lines.begin(), state.lines.end(), [](const auto& of) { return of.name == "again"; });
  REQUIRE(found != state.lines.end());
  REQUIRE(found->events.size() == 1);
  CHECK(found->events[0].text == "two");
  CHECK_FALSE(state.lost_lines);  // the line that was used again had no calls of a communicator
  const FlightGroup group{0, 1, 2};
  FlightRecord other(folder.path, 1, 2, "here");
  for (int i = 0; i < 31; ++i) lines.push_back(other.line(FlightThread::communication, format("line {}", i), group));
  CHECK_FALSE(read_flight_record(other.path()).lost_lines);
  FlightLine dropped = other.line(FlightThread::communication, "one more", group);
  CHECK(read_flight_record(other.path()).lost_lines);
  FlightLine nowhere;
  nowhere.enter({.text = "dropped"});
  nowhere.leave();
}

TEST_CASE("the activity of a rank is what its training thread waits for") {
  const TemporaryFolder folder;
  FlightRecord record(folder.path, 0, 2, "here");
  FlightLine data = record.line(FlightThread::data, "training samples");
  FlightLine calls = record.line(FlightThread::communication, "communicator 1", {0, 1, 2});
  const auto activity = [&] { return describe(*activity_of(read_flight_record(record.path()))); };
  CHECK_FALSE(activity_of(read_flight_record(record.path())));
  record.training().enter({.activity = Activity::waiting_for_data, .step = 7});
  CHECK(activity() == "waiting for data");
  data.enter({.activity = Activity::reading_data, .step = 7, .text = "img_0412.jpg"});
  CHECK(activity() == "reading data: img_0412.jpg");
  data.leave();
  record.training().enter({.activity = Activity::computing, .step = 7, .text = "dense 'fc1' in backward"});
  calls.enter({.activity = Activity::communicating, .step = 7, .text = "all_reduce of bucket 0 (fc2)"});
  CHECK(activity() == "computing: dense 'fc1' in backward");
  record.training().enter({.activity = Activity::communicating, .step = 7, .text = "wait for bucket 0 (fc2)"});
  CHECK(activity() == "communicating: all_reduce of bucket 0 (fc2)");
  calls.leave();
  CHECK(activity() == "communicating: wait for bucket 0 (fc2)");
  CHECK(last_change(read_flight_record(record.path())) > 0);
}

}  // namespace
}  // namespace trainctl::flight_test
