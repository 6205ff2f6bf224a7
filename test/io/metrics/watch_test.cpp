// Tests watching a run by its directory: a record that grows, is truncated and replaced; its events; and whether its
// process is alive.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/supervisor_lock.h"
#include "core/base/version.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/metrics/run_lock.h"
#include "io/metrics/watch/running_runs.h"
#include "io/metrics/watch/watch_text.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::watch_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

std::string joined(const GrowingFile::News& news) {
  std::string text;
  for (const std::string& line : news.lines) text += line + "\n";
  return text;
}

StartEvent start_event(std::int64_t first_step = 0) {
  StartEvent start;
  start.version = version();
  start.ranks = 4;
  start.mesh = {4, 1, 1};
  start.hosts = {"node1", "node2"};
  start.device = "a device";
  start.parameters = 101770;
  start.steps_per_epoch = 10;
  start.total_steps = 45;
  start.first_step = first_step;
  return start;
}

StepEvent step_event(std::int64_t step) {
  StepEvent event;
  event.step = step;
  event.epoch = static_cast<double>(step) / 10;
  event.loss = 1.0 / static_cast<double>(step);
  event.learning_rate = 0.1;
  event.samples_per_second = 1000;
  return event;
}

EndEvent end_event(const std::string& status) {
  EndEvent end;
  end.status = status;
  end.step = 45;
  end.epoch = 4.5;
  end.train = {{"loss", nan}};
  return end;
}

// The ID of a process that has ended.
pid_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// Writes the lock of a run directory as if that process of this host had taken it.
void lock_for(const std::string& directory, pid_t process) {
  {
    RunLock lock;
    lock.take(directory);
  }
  std::string text = read_text(directory + "/lock");
  text.replace(text.find(std::to_string(getpid())), std::to_string(getpid()).size(), std::to_string(process));
  write_text(directory + "/lock", text);
}

RunState state_of(const std::string& directory) {
  WatchedRun run(directory);
  run.look([](RunEvent) {});
  return run.state();
}

std::string refusal(const std::string& directory) {
  try {
    state_of(directory);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

// Sets the times in a record and the time of its lock back by `seconds`.
void age(const std::string& directory, double seconds) {
  std::string aged;
  std::istringstream lines(read_text(directory + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line);
    json["time"] = json["time"].get<double>() - seconds;
    aged += json.dump() + "\n";
  }
  write_text(directory + "/metrics.jsonl", aged);
  struct stat status {};
  REQUIRE(stat((directory + "/lock").c_str(), &status) == 0);
  const timespec then{status.st_mtim.tv_sec - static_cast<time_t>(seconds), 0};
  const timespec times[] = {then, then};
  REQUIRE(utimensat(AT_FDCWD, (directory + "/lock").c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("a file that grows by random pieces is read in whole lines, each once") {
  const TemporaryFolder folder;
  const std::string path = folder / "lines";
  GrowingFile file(path);
  CHECK(file.read().lines.empty());  // the file does not exist yet
  std::mt19937 random(5);
  std::string written, seen;
  for (int piece = 0; piece < 300; ++piece) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = random() % 6 == 0 ? '\n' : static_cast<char>('a' + random() % 26);
    append(path, text);
    written += text;
    const GrowingFile::News news = file.read();
    CHECK_FALSE(news.anew);
    seen += joined(news);
    CHECK(seen == written.substr(0, written.rfind('\n') + 1));
  }
}

TEST_CASE("a file that is replaced, truncated or removed is read anew, also if the new one is longer") {
  const TemporaryFolder folder;
  const std::string path = folder / "lines";
  GrowingFile file(path);
  write_text(path, "one 1\ntwo 2\n");
  CHECK(joined(file.read()) == "one 1\ntwo 2\n");
  write_text(path, "one 3\ntwo 4\nthree 5\n");
  GrowingFile::News news = file.read();
  CHECK(news.anew);
  CHECK(joined(news) == "one 3\ntwo 4\nthree 5\n");
  write_text(path, "one 3\n");
  news = file.read();
  CHECK(news.anew);
  CHECK(joined(news) == "one 3\n");
  fs::remove(path);
  news = file.read();
  CHECK(news.anew);
  CHECK(news.lines.empty());
  CHECK_FALSE(file.read().anew);
  write_text(path, "one 6\nto");
  CHECK(joined(file.read()) == "one 6\n");
  write_text(path, "one 6\n");  // the incomplete line of a killed run is removed
  news = file.read();
  CHECK_FALSE(news.anew);
  CHECK(news.lines.empty());
}

TEST_CASE("a long file is read in blocks, a long line as a whole") {
  const TemporaryFolder folder;
  const std::string path = folder / "lines";
  std::string text(9 << 20, 'x');
  text += "\nshort\n";
  for (int i = 0; i < 700000; ++i) text += "0123456789\n";
  write_text(path, text);
  GrowingFile file(path);
  std::string seen;
  for (bool more = true; more;) {
    const GrowingFile::News news = file.read();
    more = news.more;
    seen += joined(news);
  }
  CHECK((seen == text));
}

TEST_CASE("what MetricsJsonl writes is read back, including NaN and the GPUs' readings") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  GpuReading reading;
  reading.utilization = 0.5;
  reading.memory_bytes = 4e9;
  reading.throttled = GpuReading::power_cap | 0x20;
  const std::vector<GpuSample> gpus{{0, reading}, {1, GpuReading{}}};
  {
    MetricsJsonl sink(path, Duration::steps(1));
    sink.start(start_event());
    for (int step = 1; step <= 10; ++step) {
      StepEvent event = step_event(step);
      if (step == 10) event.loss = nan;
      event.gpus = gpus;
      sink.step(event);
    }
    sink.epoch(
        {1, 10, {{"loss", 0.5}, {"auc", nan}}, {{"loss", 0.75}}, 2, {{"confusion_matrix", {{1, 2}, {3, 4}}}}, {}});
    sink.checkpoint({10, "there/step-10", 0.5, 1234});
  }
  RunRecord record;
  std::istringstream text(read_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  for (const std::string& line : lines) CHECK(add_line(record, line) != RunEvent::none);
  CHECK(record.start->device == "a device");
  CHECK(record.start->hosts == std::vector<std::string>{"node1", "node2"});
  CHECK(record.step->step == 10);
  CHECK(std::isnan(record.step->loss));
  CHECK(record.epoch->train.at("loss") == 0.5);
  CHECK(std::isnan(record.epoch->train.at("auc")));
  CHECK(record.epoch->train.size() == 2);  // without the matrix
  CHECK(record.checkpoint->path == "there/step-10");
  CHECK_FALSE(record.end);
  REQUIRE(record.gpus.size() == 2);
  CHECK(record.gpus[0].reading.throttled == reading.throttled);
  CHECK(std::isnan(record.gpus[1].reading.power_watts));
  const ProgressState state = progress_of(record);
  CHECK(state.total_steps == 45);
  CHECK(state.gpu_memory_bytes == 4e9);

  CHECK(add_line(record, "{\"event\":\"step\",\"ti") == RunEvent::none);                // damaged
  CHECK(add_line(record, R"({"event":"news","time":1})") == RunEvent::none);            // from a later version
  CHECK_THROWS_AS(add_line(record, R"({"event":"step","time":1,"step":"x"})"), Error);  // from another version
}

TEST_CASE("the time left follows from the time between steps, without the time at the end of epochs") {
  RunRecord record;
  const auto add = [&record](double time, const std::string& event, Json json) {
    json["event"] = event;
    json["time"] = time;
    add_line(record, json.dump());
  };
  add(100, "start",
      {{"version", version()},
       {"seed", 1},
       {"ranks", 1},
       {"mesh", {1, 1, 1}},
       {"hosts", Json::array()},
       {"device", ""},
       {"parameters", 1},
       {"resumed_from", nullptr},
       {"steps_per_epoch", 20},
       {"total_steps", 100}});
  CHECK(progress_of(record).seconds_left == -1);
  const auto step = [&](double time, int number) {
    add(time, "step",
        {{"step", number},
         {"epoch", number / 20.0},
         {"loss", 1},
         {"learning_rate", 0.1},
         {"samples_per_second", 10},
         {"gradient_norm", 1},
         {"data_wait_share", 0}});
  };
  step(101, 10);
  step(106, 20);  // half a second each
  add(150, "epoch",
      {{"epoch", 1}, {"step", 20}, {"train", {{"loss", 1}}}, {"validation", Json::object()}, {"seconds", 50}});
  step(155, 30);
  CHECK(progress_of(record).seconds_left == Approx(35));
  CHECK(record.longest_gap == Approx(44));
  step(160, 40);
  CHECK(progress_of(record).seconds_left == Approx(30));
}

TEST_CASE("after the end of a run, its step, epoch and loss are those of the end") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  EndEvent last = end_event("completed");
  last.step = 47;
  last.epoch = 1.25;
  last.train = {{"loss", 0.375}};
  {
    MetricsJsonl sink(path, Duration::steps(1));
    sink.start(start_event());
    sink.step(step_event(40));
    sink.end(last);
  }
  RunRecord record;
  std::istringstream text(read_text(path));
  std::string line;
  for (int read = 0; std::getline(text, line); ++read) {
    add_line(record, line);
    if (read == 1) CHECK(progress_of(record).step == 40);
  }
  const ProgressState state = progress_of(record);
  CHECK(state.step == 47);
  CHECK(state.epoch == 1.25);
  CHECK(state.loss == 0.375);
  CHECK(state.seconds_left == 0);
  record.end->status = "failed";
  record.end->step = 0;  // unknown
  CHECK(progress_of(record).step == 40);
  CHECK(progress_of(record).seconds_left == -1);
}

TEST_CASE("steps that are followed by many newer ones are skipped, other events never") {
  std::vector<std::string> lines, expected;
  for (int step = 1; step <= 100; ++step) {
    const std::string line = format(R"({{"event":"step","time":{0},"step":{0}}})", step);
    lines.push_back(line);
    if (step > 80) expected.push_back(line);
    if (step == 10) lines.push_back(R"({"event":"epoch"})");
  }
  expected.insert(expected.begin(), R"({"event":"epoch"})");
  CHECK(without_old_steps(lines) == expected);
}

TEST_CASE("a resumed run discards the events after the step where it resumes") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsJsonl sink(path, Duration::steps(1));
    sink.start(start_event());
    sink.checkpoint({10, "first", 1, 1});
    sink.epoch({2, 20, {{"loss", 1}}, {}, 1, {}, {}});
    sink.step(step_event(25));
    sink.end(end_event("stopped"));
    sink.start(start_event(10));
  }
  RunRecord record;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) add_line(record, line);
  CHECK_FALSE(record.end);
  CHECK_FALSE(record.step);
  CHECK_FALSE(record.epoch);
  CHECK(record.checkpoint->path == "first");
  CHECK(progress_of(record).step == 10);
  CHECK(progress_of(record).epoch == 1);
}

TEST_CASE("the state of a run follows from its record and its process") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", record = run + "/metrics.jsonl";
  lock_for(run, getpid());
  CHECK(state_of(run) == RunState::starting);
  MetricsJsonl(record, Duration::steps(1)).start(start_event());
  CHECK(state_of(run) == RunState::running);
  CHECK(may_be_running(run));
  lock_for(run, ended_process());
  CHECK(state_of(run) == RunState::gone);
  CHECK_FALSE(may_be_running(run));

  write_text(run + "/lock", "process 17 on another-host\n");
  CHECK(state_of(run) == RunState::running);
  age(run, 300);
  CHECK(state_of(run) == RunState::silent);
  CHECK(may_be_running(run));
  WatchedRun watched(run);
  watched.look([](RunEvent) {});
  CHECK(state_text(watched).starts_with("no event of process 17 on another-host for 5:0"));
  MetricsJsonl(record, Duration::steps(1)).step(step_event(3));
  watched.look([](RunEvent) {});
  CHECK(watched.state() == RunState::running);
  CHECK(watched.silent_seconds() < 30);
  age(run, 500);  // shorter than three times the 300 s that were between its events
  CHECK(state_of(run) == RunState::running);

  MetricsJsonl(record, Duration::steps(1)).end(end_event("stopped"));
  CHECK(state_of(run) == RunState::ended);
  CHECK_FALSE(may_be_running(run));
  age(run, 100);
  lock_for(run, getpid());  // resumed, but not in the record yet
  CHECK(state_of(run) == RunState::starting);
  CHECK(may_be_running(run));
}

TEST_CASE("a run whose ranks start again is neither gone nor ended, as long as its supervisor runs") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", record = run + "/metrics.jsonl";
  lock_for(run, ended_process());
  MetricsJsonl(record, Duration::steps(1)).start(start_event());
  CHECK(state_of(run) == RunState::gone);
  SupervisorLock supervisor;
  REQUIRE(supervisor.take(run, "n1-77-5"));
  WatchedRun watched(run);
  watched.look([](RunEvent) {});
  CHECK(watched.state() == RunState::starting);
  CHECK(state_text(watched) == "starting");
  CHECK(watched.process().starts_with("process " + std::to_string(getpid())));
  CHECK(may_be_running(run));
  MetricsJsonl(record, Duration::steps(1)).end(end_event("failed"));  // rank 0 has noticed that another rank is lost
  CHECK(may_be_running(run));
  CHECK(state_of(run) == RunState::starting);
  const std::string ended = read_text(run + "/lock");
  write_text(run + "/lock", supervisor_of(run)->process + "\n");  // rank 0, here this process, has not ended yet
  CHECK(state_of(run) != RunState::ended);
  write_text(run + "/lock", "process 17 on another-host\n");
  CHECK(may_be_running(run));
  write_text(run + "/lock", ended);
  supervisor.release();
  CHECK(state_of(run) == RunState::ended);
  REQUIRE(supervisor.take(run, "n1-77-6"));
  MetricsJsonl(record, Duration::steps(1)).end(end_event("stopped"));
  CHECK(state_of(run) == RunState::ended);
}

TEST_CASE("a record that begins anew is reported, and a removed directory is an error") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", record = run + "/metrics.jsonl";
  lock_for(run, getpid());
  MetricsJsonl(record, Duration::steps(1)).start(start_event());
  WatchedRun watched(run);
  std::vector<RunEvent> events;
  const auto look = [&] { watched.look([&events](RunEvent event) { events.push_back(event); }); };
  look();
  look();
  fs::remove(record);
  MetricsJsonl(record, Duration::steps(1)).start(start_event(10));
  look();
  CHECK((events == std::vector{RunEvent::start, RunEvent::anew, RunEvent::start}));
  fs::remove_all(run);
  CHECK_THROWS_AS(look(), Error);
}

TEST_CASE("a directory without a complete run of this version is refused with a reason") {
  const TemporaryFolder folder;
  CHECK(contains(refusal(folder / "nowhere"), "there is no such directory"));
  write_text(folder / "file", "");
  CHECK(contains(refusal(folder / "file"), "this is not a directory"));
  fs::create_directories(folder / "photos/cats");
  CHECK(contains(refusal(folder / "photos"), "holds no run"));
  fs::create_directories(folder / "half/checkpoints");
  write_text(folder / "half/config.yaml", "");
  CHECK(contains(refusal(folder / "half"), "metrics.jsonl, is missing"));
  lock_for(folder / "dead", ended_process());
  CHECK(contains(refusal(folder / "dead"), "never began to train"));

  const auto with_record = [&](const std::string& text) {
    write_text(folder / "photos/metrics.jsonl", text);
    return refusal(folder / "photos");
  };
  CHECK(contains(with_record("{\"loss\": 1}\n"), "not the record of a run"));
  CHECK(contains(with_record("epoch,loss\n1,2\n"), "not the record of a run"));
  CHECK(contains(with_record(R"({"event":"start","time":1,"version":"7.1.0"})"
                             "\n"),
                 "the run was started by trainctl 7.1.0"));
  CHECK(contains(with_record(format("{{\"event\":\"start\",\"time\":1,\"version\":\"{}\"}}\n", version())),
                 "not as this version"));
  fs::remove(folder / "photos/metrics.jsonl");
  fs::create_directories(folder / "photos/metrics.jsonl");
  CHECK(contains(refusal(folder / "photos"), "is a folder"));
}

TEST_CASE("the table lists the running runs, and runs that cannot be read are reported once") {
  const TemporaryFolder folder;
  const std::string runs = folder / "runs";
  fs::create_directories(runs);
  CHECK_THROWS_AS(RunningRuns(folder / "nowhere"), Error);
  RunningRuns running(runs);
  CHECK(running.look().empty());
  for (const char* name : {"one", "two", "ended", "bad"}) {
    lock_for(runs + "/" + name, getpid());
    MetricsJsonl sink(runs + "/" + name + "/metrics.jsonl", Duration::steps(1));
    sink.start(start_event());
    sink.step(step_event(9));
    if (name == std::string("ended")) sink.end(end_event("completed"));
  }
  fs::create_directories(runs + "/other");
  write_text(runs + "/bad/metrics.jsonl", "bad\n");
  const std::vector<const WatchedRun*> found = running.look();
  REQUIRE(found.size() == 2);
  const std::string table = runs_table(found, 0);
  CHECK(contains(table, "runs/one"));
  CHECK(contains(table, "0.9/5"));
  CHECK(contains(table, "9/45"));
  CHECK(contains(table, "running"));
  CHECK_FALSE(contains(table, "ended"));
  CHECK(running.take_problems().size() == 1);
  running.look();
  CHECK(running.take_problems().empty());

  const Json json = to_json(*found[0]);
  CHECK(json["state"] == "running");
  CHECK(json["status"].is_null());
  CHECK(json["step"] == 9);
  CHECK(json["epochs"] == 5);
  CHECK(json["checkpoint"].is_null());
}

}  // namespace trainctl::test::watch_test
