// Tests the messages between the supervisor and its hosts' agents: random messages come back as they were, and broken
// lines are refused.
#include "parallel/launch/watch/messages.h"

#include <random>

#include "test/catch.h"
#include "test/support/mutation.h"

namespace trainctl::watch_messages_test {
namespace {

const std::string mark = "trainctl-0123456789abcdef";

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> parts = {"conv1", " ", "…", "\"", "\\", "a/b", "\t", "ü", "{", "all_reduce"};
  std::string text;
  for (std::size_t i = random() % 8; i > 0; --i) text += parts[random() % parts.size()];
  return text;
}

RankView random_view(std::mt19937& random) {
  return {.rank = static_cast<int>(random() % 10000),
          .process = static_cast<int>(random() % 100000),
          .training = static_cast<Activity>(random() % 10),
          .waits = random() % 2 == 0,
          .in_message = random() % 2 == 0,
          .activity = static_cast<Activity>(random() % 10),
          .text = random_text(random),
          .step = static_cast<std::int64_t>(random()) - 1,
          .seconds = static_cast<double>(random() % 100000) / 1e3,
          .progress = random(),
          .step_seconds = static_cast<double>(random() % 100000) / 1e3};
}

RankPlace random_place(std::mt19937& random) {
  RankPlace rank{.rank = static_cast<int>(random() % 100)};
  rank.place = {.exists = random() % 2 == 0, .stopped = random() % 2 == 0, .in_debugger = random() % 2 == 0};
  for (std::size_t i = random() % 4; i > 0; --i) {
    ThreadPlace thread{.name = random_text(random), .state = "RSDTt"[random() % 5]};
    thread.system_call = random_text(random);
    thread.kernel_function = random_text(random);
    for (std::size_t j = random() % 5; j > 0; --j) thread.functions.push_back(random_text(random));
    rank.place.threads.push_back(thread);
  }
  return rank;
}

WatchNews random_news(std::mt19937& random) {
  WatchNews news{.kind = static_cast<WatchNews::Kind>(random() % 5)};
  switch (news.kind) {
    case WatchNews::Kind::hello:
      news.version = static_cast<int>(random() % 9);
      break;
    case WatchNews::Kind::ranks:
      for (std::size_t i = random() % 5; i > 0; --i) news.ranks.push_back(random_view(random));
      break;
    case WatchNews::Kind::places:
      for (std::size_t i = random() % 3; i > 0; --i) news.places.push_back(random_place(random));
      news.last = random() % 2 == 0;
      break;
    case WatchNews::Kind::file:
      news.file_name = "rank-00003";
      for (std::size_t i = random() % 300; i > 0; --i) news.bytes += static_cast<char>(random());
      break;
    case WatchNews::Kind::files:
      break;
  }
  return news;
}

std::string without_end(std::string line) {
  REQUIRE(line.back() == '\n');
  line.pop_back();
  return line;
}

TEST_CASE("news of agents come back as they were sent") {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const WatchNews sent = random_news(random);
    const std::string line = without_end(to_line(sent, mark));
    REQUIRE(line.find('\n') == std::string::npos);
    const auto received = read_news(line, mark);
    REQUIRE(received);
    CHECK(received->kind == sent.kind);
    CHECK(received->version == sent.version);
    CHECK(received->places == sent.places);
    CHECK(received->last == sent.last);
    CHECK(received->file_name == sent.file_name);
    CHECK(received->bytes == sent.bytes);
    REQUIRE(received->ranks.size() == sent.ranks.size());
    for (std::size_t j = 0; j < sent.ranks.size(); ++j) {
      const RankView &a = sent.ranks[j], &b = received->ranks[j];
      CHECK(b.same_as(a));
      CHECK(b.training == a.training);
      CHECK(b.waits == a.waits);
      CHECK(b.in_message == a.in_message);
      CHECK(b.activity == a.activity);
      CHECK(b.text == a.text);
      CHECK(b.step == a.step);
      CHECK(b.seconds == a.seconds);
      CHECK(b.step_seconds == a.step_seconds);
    }
  }
}

TEST_CASE("requests come back as they were sent") {
  for (const auto kind : {WatchRequest::Kind::alive, WatchRequest::Kind::pause, WatchRequest::Kind::places,
                          WatchRequest::Kind::files, WatchRequest::Kind::end}) {
    CHECK(read_request(without_end(to_line({kind}))) == WatchRequest{kind});
  }
  for (const char* line : {"", "{}", "[]", "alive", R"({"kind":"stop"})", R"({"kind":3})", R"({"kind":"alive")"}) {
    CAPTURE(line);
    CHECK_FALSE(read_request(line));
  }
}

TEST_CASE("what login scripts print is no message, and a line belongs to one agent") {
  const std::string line = without_end(to_line(WatchNews{.kind = WatchNews::Kind::files}, mark));
  CHECK(read_news(line, mark));
  CHECK_FALSE(read_news("Welcome to n3", mark));
  CHECK_FALSE(read_news("", mark));
  CHECK_FALSE(read_news(mark, mark));
  CHECK_FALSE(read_news("0" + line, mark));
  CHECK_FALSE(read_news(line, "trainctl-fedcba9876543210"));
  CHECK_FALSE(read_news(line + " and more", mark));
}

TEST_CASE("values that no agent sends are refused") {
  const auto is_read = [](const std::string& json) { return read_news(mark + " " + json, mark).has_value(); };
  const std::string view =
      R"("process":1,"training":0,"waits":true,"in_message":false,"activity":0,"text":"","step":1,)"
      R"("ms":1,"progress":1,"step_us":0)";
  CHECK(is_read(R"({"kind":"ranks","ranks":[{"rank":0,)" + view + "}]}"));
  for (const char* rank : {"-1", "1.5", "\"1\"", "null", "99999999999999999999", "18446744073709551615", "1e3"}) {
    CAPTURE(rank);
    CHECK_FALSE(is_read(std::string(R"({"kind":"ranks","ranks":[{"rank":)") + rank + "," + view + "}]}"));
  }
  CHECK_FALSE(is_read(R"({"kind":"ranks","ranks":[{)" + view + "}]}"));
  CHECK_FALSE(is_read(R"({"kind":"ranks"})"));
  CHECK_FALSE(is_read(R"({"kind":"ranks","ranks":{}})"));
  CHECK(is_read(R"({"kind":"file","name":"rank-00001","bytes":"00ff"})"));
  for (const char* name : {"../config.yaml", "/etc/passwd", "", ".", "..", "a/b", "a\\u0000b"}) {
    CAPTURE(name);
    CHECK_FALSE(is_read(std::string(R"({"kind":"file","bytes":"","name":")") + name + "\"}"));
  }
  for (const char* bytes : {"0", "0g", "0F", " 0"}) {
    CAPTURE(bytes);
    CHECK_FALSE(is_read(std::string(R"({"kind":"file","name":"rank-00001","bytes":")") + bytes + "\"}"));
  }
}

TEST_CASE("broken lines do no harm") {
  std::mt19937 random(11);
  for (int i = 0; i < 20 * test::mutations(); ++i) {
    const std::string line = test::mutated(to_line(random_news(random), mark), random);
    if (const auto news = read_news(line, mark)) {
      CHECK(news->file_name.find('/') == std::string::npos);
      for (const RankView& view : news->ranks) CHECK(view.rank >= 0);
    }
    read_request(line);
  }
}

TEST_CASE("lines arrive in pieces, and a line without an end is dropped") {
  std::mt19937 random(13);
  std::string text;
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) {
    lines.push_back(random_text(random));
    text += lines.back() + "\n";
  }
  LineReader reader;
  std::vector<std::string> read;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = std::min<std::size_t>(1 + random() % 9, text.size() - at);
    for (std::string& line : reader.add(std::string_view(text).substr(at, count))) read.push_back(std::move(line));
    at += count;
  }
  CHECK(read == lines);
  const std::string piece(10000, 'x');
  for (int i = 0; i < 100; ++i) CHECK(reader.add(piece).empty());
  CHECK(reader.add("end\nnext\n") == std::vector<std::string>{"next"});
  const std::string longest(longest_watch_line, 'y');
  CHECK(reader.add(longest + "\n") == std::vector<std::string>{longest});
  CHECK(reader.add(longest + "y\n").empty());
}

}  // namespace
}  // namespace trainctl::watch_messages_test
