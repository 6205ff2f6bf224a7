// Tests which directory a run uses, and that it has one writer.
#include "io/metrics/run_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/supervisor_lock.h"
#include "io/checkpoint/store.h"
#include "io/metrics/absent_supervisor.h"
#include "io/metrics/find_run.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"
#include "test/support/failing_calls.h"
#include "test/support/snapshots.h"

namespace trainctl::test::run_directory_test {
namespace {

// A temporary working directory for the life of the object, since the default directories are relative to it.
struct WorkingFolder {
  TemporaryFolder folder;
  fs::path before = fs::current_path();
  WorkingFolder() { fs::current_path(folder.path); }
  ~WorkingFolder() { fs::current_path(before); }
};

Node config(const std::string& batch_size, const std::string& more = "") {
  Reader reader;
  const std::string text = "name: digits\nmodel: {layers: [flatten]}\ntrain: {batch_size: " + batch_size +
                           (more.find("epochs") == std::string::npos ? ", epochs: 5" : "") +
                           (more.empty() ? "" : ", ") + more + "}\n";
  const Node node = parse_yaml(text, "digits.yaml", "/", reader);
  reader.throw_if_failed();
  return node;
}

RunRequest request(Node node, const std::string& given = {}, bool may_resume = true) {
  return {"digits", given, may_resume, std::move(node)};
}

void save(const RunDirectory& run) { test::save(CheckpointStore(run.path(), {}), RandomSnapshot(1, 10).snapshot); }

void finish(const RunDirectory& run, const std::string& status = "completed") {
  EndEvent end;
  end.status = status;
  MetricsJsonl(run.metrics_path(), Duration::steps(1)).end(end);
}

// Makes a run of this config with a checkpoint and this final status. Returns its directory.
std::string make_run(const Node& config, const std::string& given, const std::string& status) {
  RunDirectory run(request(config, given));
  run.claim(config);
  save(run);
  finish(run, status);
  return run.path();
}

ErrorKind kind_of_refusal(const FoundRun& found, bool given, bool may_resume) {
  ErrorKind kind = ErrorKind::internal;
  CHECK(failure_of([&] { decide(found, given, may_resume, "runs/a"); }, &kind).find("runs/a: ") == 0);
  return kind;
}

int entries_of(const std::string& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a directory that ranks have left stays their run's for as long as the next ranks may take to start") {
  using std::chrono::milliseconds, std::chrono::seconds, std::chrono::minutes;
  CHECK(time_to_start_again(seconds(5), seconds(30)) == milliseconds(60'000));
  CHECK(time_to_start_again(minutes(10), seconds(30)) == milliseconds(600'000));
  CHECK(time_to_start_again(seconds(5), minutes(7)) == milliseconds(420'000));
  CHECK(time_to_start_again(milliseconds(0), minutes(7)) == milliseconds(420'000));
  CHECK_FALSE(time_to_start_again(minutes(10), milliseconds(0)));
}

TEST_CASE("the state of a directory decides whether a run starts, resumes or is refused there") {
  using State = FoundRun::State;
  for (const bool given : {false, true}) {
    for (const bool may_resume : {false, true}) {
      CHECK(decide({State::nothing}, given, may_resume, "runs/a") == RunVerdict::start);
      CHECK(decide({State::empty}, given, may_resume, "runs/a") == RunVerdict::start_anew);
      CHECK(kind_of_refusal({State::foreign}, given, may_resume) == ErrorKind::config);
    }
    CHECK(decide({State::unfinished}, given, true, "runs/a") == RunVerdict::resume);
    CHECK(decide({State::unfinished, {}, true}, given, true, "runs/a") == RunVerdict::resume);
    CHECK(kind_of_refusal({State::unfinished, {"seed: 1 before, 2 now"}}, given, true) == ErrorKind::config);
  }
  for (const bool more : {false, true}) {
    CHECK(decide({State::finished, {}, more}, false, true, "runs/a") == RunVerdict::look_elsewhere);
    CHECK(decide({State::finished, {"x"}, more}, false, true, "runs/a") == RunVerdict::look_elsewhere);
    CHECK(decide({State::finished, {}, more}, false, false, "runs/a") == RunVerdict::look_elsewhere);
    CHECK(kind_of_refusal({State::finished, {"x"}, more}, true, true) == ErrorKind::config);
    CHECK(kind_of_refusal({State::finished, {}, more}, true, false) == ErrorKind::config);
  }
  CHECK(decide({State::unfinished}, false, false, "runs/a") == RunVerdict::look_elsewhere);
  CHECK(decide({State::finished, {}, false}, true, true, "runs/a") == RunVerdict::is_finished);
  CHECK(decide({State::finished, {}, true}, true, true, "runs/a") == RunVerdict::resume);
  CHECK(kind_of_refusal({State::unfinished}, true, false) == ErrorKind::config);
}

TEST_CASE("limits of a run's length are no deciding differences, and a longer run is recognised") {
  const Node before = config("64");
  CHECK(deciding_differences(before, config("64", "epochs: 9, max_steps: 3, max_time: 5 min")).empty());
  CHECK(deciding_differences(before, config("65")).size() == 1);
  CHECK(deciding_differences(before, config("64", "loss: mse")).size() == 1);
  CHECK_FALSE(ends_later(config("64"), before));
  CHECK(ends_later(config("64", "epochs: 6"), before));
  CHECK_FALSE(ends_later(config("64", "epochs: 4"), before));
  CHECK_FALSE(ends_later(config("64", "epochs: 5, max_steps: 100"), before));
  CHECK(ends_later(config("64"), config("64", "max_steps: 100")));
  CHECK(ends_later(config("64", "max_time: 2 min"), config("64", "max_time: 110 s")));
  CHECK_FALSE(ends_later(config("64", "max_time: 100 s"), config("64", "max_time: 2 min")));
}

TEST_CASE("a run directory is not changed before it is claimed") {
  const WorkingFolder working;
  {
    RunDirectory run(request(config("64")));
    CHECK(run.path() == "runs/digits");
    CHECK_FALSE(fs::exists("runs"));
    run.claim(config("64"));
    CHECK_FALSE(run.resumes());
    Reader reader;
    CHECK(differences(load_yaml("runs/digits/config.yaml", environment(), reader), config("64")).empty());
    CHECK(fs::exists("runs/digits/log.txt"));
    finish(run, "failed");
  }
  write_text("runs/digits/.partial-1-config.yaml", "left by a killed writer");
  {
    RunDirectory run(request(config("128")));  // without a checkpoint, another config loses nothing
    CHECK(run.path() == "runs/digits");
    CHECK_FALSE(run.resumes());
    CHECK(contains(run.notice(), "starts anew"));
    CHECK(fs::exists("runs/digits/metrics.jsonl"));
    run.claim(config("128"));
    CHECK_FALSE(fs::exists("runs/digits/metrics.jsonl"));
    CHECK_FALSE(fs::exists("runs/digits/.partial-1-config.yaml"));
    CHECK(contains(read_text("runs/digits/config.yaml"), "128"));
    save(run);
    finish(run, "stopped");
  }
  {
    RunDirectory run(request(config("128", "epochs: 9")));
    CHECK(run.resumes());
    run.claim(config("128", "epochs: 9"));
    CHECK(fs::exists("runs/digits/metrics.jsonl"));
    finish(run);
  }
  {
    const RunDirectory run(request(config("128", "epochs: 9")));
    CHECK(run.path() == "runs/digits-2");
    CHECK(contains(run.notice(), "runs/digits holds a finished run"));
    CHECK_FALSE(fs::exists("runs/digits-2"));
  }
  make_run(config("128"), "", "failed");
  CHECK(RunDirectory(request(config("128"))).path() == "runs/digits-2");
  CHECK(RunDirectory(request(config("128"), "", false)).path() == "runs/digits-3");
}

TEST_CASE("an unfinished run of another config is refused with the differences") {
  const WorkingFolder working;
  make_run(config("64"), "", "stopped");
  const std::string before = read_text("runs/digits/config.yaml");
  ErrorKind kind{};
  const std::string text = failure_of([] { RunDirectory run(request(config("128"))); }, &kind);
  CHECK(kind == ErrorKind::config);
  CHECK(contains(text, "runs/digits: there is an unfinished run of another config"));
  CHECK(contains(text, "train.batch_size: 64"));
  CHECK(contains(text, "128"));
  CHECK(read_text("runs/digits/config.yaml") == before);
  CHECK_NOTHROW(RunDirectory(request(config("64"))));  // the lock was released
}

TEST_CASE("a given directory is used again by the same config, and refused if it holds other files") {
  const WorkingFolder working;
  make_run(config("64"), "mine/here", "completed");
  const RunDirectory again(request(config("64", "epochs: 4"), "mine/here"));
  CHECK(again.is_finished());
  CHECK_FALSE(again.resumes());
  { CHECK_THROWS_AS(RunDirectory(request(config("65"), "mine/here")), Error); }
  fs::create_directory("photos");
  write_text("photos/cat.jpg", "cat");
  ErrorKind kind{};
  CHECK(contains(failure_of([] { RunDirectory run(request(config("64"), "photos")); }, &kind), "photos: "));
  CHECK(kind == ErrorKind::config);
  CHECK(entries_of("photos") == 1);
  kind = {};
  CHECK(contains(failure_of([] { RunDirectory run(request(config("64"), "photos/cat.jpg")); }, &kind), "cannot write"));
  CHECK(kind == ErrorKind::resource);
  // A directory with a config of the user's own is not a run directory.
  fs::create_directory("own");
  write_text("own/config.yaml", "name: digits\n");
  CHECK(contains(failure_of([] { RunDirectory run(request(config("64"), "own")); }, &kind), "own: "));
  CHECK(kind == ErrorKind::config);
}

TEST_CASE("a finished run in a given directory is resumed if more epochs are asked for") {
  const WorkingFolder working;
  make_run(config("64"), "mine", "completed");
  RunDirectory more(request(config("64", "epochs: 7"), "mine"));
  CHECK(more.resumes());
  CHECK(contains(more.notice(), "goes on"));
}

TEST_CASE("directories that cannot be created are resource errors and leave no files") {
  const WorkingFolder working;
  fs::create_symlink("loop", "loop");
  write_text("file", "");
  for (const std::string& path : {std::string("loop"), std::string("loop/run"), std::string("file/run"),
                                  std::string("/proc/nowhere"), std::string(300, 'x'), "a/" + std::string(300, 'x')}) {
    CAPTURE(path);
    ErrorKind kind{};
    const std::string text = failure_of(
        [&] {
          RunDirectory run(request(config("64"), path));
          run.claim(config("64"));
        },
        &kind);
    CHECK(contains(text, "cannot "));
    CHECK(kind == ErrorKind::resource);
    kind = {};
    failure_of([&] { probe_run_directory(path); }, &kind);
    CHECK(kind == ErrorKind::resource);
    CHECK(entries_of(".") == 2);
  }
  probe_run_directory("deep/er/run");
  CHECK(entries_of(".") == 2);
  fs::create_directory("there");
  probe_run_directory("there");
  CHECK(entries_of("there") == 0);
}

TEST_CASE("a lock or a log that is not a regular file is an error, and is not waited for") {
  const WorkingFolder working;
  make_run(config("64"), "locked", "stopped");
  fs::remove("locked/lock");
  REQUIRE(mkfifo("locked/lock", 0600) == 0);
  CHECK(lock_holder("locked").empty());
  ErrorKind kind{};
  CHECK(failure_of([] { RunDirectory run(request(config("64"), "locked")); }, &kind)
            .starts_with("locked/lock: is not a regular file"));
  CHECK(kind == ErrorKind::resource);
  make_run(config("64"), "logged", "stopped");
  fs::remove("logged/log.txt");
  REQUIRE(mkfifo("logged/log.txt", 0600) == 0);
  kind = {};
  const std::string text = failure_of(
      [] {
        RunDirectory run(request(config("64"), "logged"));
        run.claim(config("64"));
      },
      &kind);
  CHECK(text.starts_with("logged/log.txt: is not a regular file"));
  CHECK(kind == ErrorKind::resource);
}

TEST_CASE("a run directory has one writer") {
  const WorkingFolder working;
  RunDirectory run(request(config("64")));
  RunDirectory late(request(config("64")));  // both found no run
  run.claim(config("64"));
  ErrorKind kind{};
  const std::string text = failure_of([&] { late.claim(config("64")); }, &kind);
  CHECK(kind == ErrorKind::config);
  CHECK(contains(text,
                 "runs/digits: another trainctl is running in this directory: process " + std::to_string(getpid())));
  CHECK(fs::exists("runs/digits/config.yaml"));
  kind = {};
  failure_of([] { RunDirectory second(request(config("64"))); }, &kind);
  CHECK(kind == ErrorKind::config);
  const pid_t child = fork();
  if (child == 0) {
    ErrorKind refused = ErrorKind::internal;
    failure_of([] { RunDirectory second(request(config("64"))); }, &refused);
    _exit(refused == ErrorKind::config ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a run that found no other run does not use a directory where one has begun meanwhile") {
  const WorkingFolder working;
  RunDirectory late(request(config("128")));
  make_run(config("64"), "", "stopped");
  const std::string before = read_text("runs/digits/config.yaml");
  ErrorKind kind{};
  CHECK(contains(failure_of([&] { late.claim(config("128")); }, &kind), "another run has begun there"));
  CHECK(kind == ErrorKind::config);
  CHECK(read_text("runs/digits/config.yaml") == before);
}

TEST_CASE("the newest run of a config has the same config, or else the same model") {
  const WorkingFolder working;
  ErrorKind kind{};
  CHECK(contains(failure_of([] { newest_run("digits", config("64"), "a.yaml"); }, &kind), "train first"));
  CHECK(kind == ErrorKind::data);
  make_run(config("64"), "runs/digits", "completed");
  make_run(config("64"), "runs/digits-2", "completed");
  make_run(config("32"), "runs/digits-10", "completed");
  { RunDirectory(request(config("64"), "runs/digits-11")).claim(config("64")); }  // has no checkpoint
  make_run(config("64"), "runs/digits-old", "completed");
  CHECK(newest_run("digits", config("64"), "a.yaml").path == "runs/digits-2");
  CHECK(newest_run("digits", config("64"), "a.yaml").differences.empty());
  CHECK(newest_run("digits", config("64", "epochs: 7"), "a.yaml").path == "runs/digits-2");
  const RunOfConfig alike = newest_run("digits", config("1"), "a.yaml");
  CHECK(alike.path == "runs/digits-10");
  CHECK(alike.differences.size() == 1);
  Node other = config("64");
  other.entries[1].value = map_node();
  append(other.entries[1].value, "preset", scalar_node("vgg16"));
  const std::string text = failure_of([&] { newest_run("digits", other, "a.yaml"); }, &kind);
  CHECK(kind == ErrorKind::config);
  CHECK(contains(text, "a.yaml"));
  CHECK(contains(text, "runs/digits-10/config.yaml"));
  CHECK(contains(text, "vgg16"));
  CHECK_FALSE(model_differences("runs/digits-2/checkpoints/last", other).empty());
  CHECK_FALSE(model_differences("runs/digits-2", other).empty());
  CHECK(model_differences("runs/digits-2/checkpoints/last", config("1")).empty());
  CHECK(model_differences("elsewhere/step-1", other).empty());
}

TEST_CASE("a later start of a run takes over its directory, and the earlier one writes no more") {
  const TemporaryFolder parent;
  const std::string path = parent / "run";
  const auto of_start = [&](const std::string& launch, int number) {
    RunRequest wanted = request(config("6"), path);
    wanted.generation = {launch, number};
    return wanted;
  };
  RunDirectory first(of_start("n1-77-5", 1));
  first.claim(config("6"));
  const auto require_first = [&first] { first.require_current(); };
  CheckpointStore store(path, {.require_current = require_first});
  test::save(store, RandomSnapshot(1, 10).snapshot);
  MetricsJsonl metrics(first.metrics_path(), Duration::steps(1), require_first);

  for (const auto& [launch, number] : {std::pair("n1-77-5", 1), {"n1-78-5", 2}, {"", 2}}) {
    INFO(launch << ' ' << number);
    CHECK(failure_of([&, launch = launch, number = number] {
            RunDirectory(of_start(launch, number));
          }).find("another trainctl is running in this directory: process") != std::string::npos);
  }
  CHECK_NOTHROW(first.require_current());

  RunDirectory second(of_start("n1-77-5", 2));
  second.claim(config("6"));
  CHECK(second.resumes());
  ErrorKind kind = ErrorKind::internal;
  CHECK(failure_of([&] { test::save(store, RandomSnapshot(2, 20).snapshot); }, &kind)
            .find("a later start of this run has taken over the directory (process ") != std::string::npos);
  CHECK(kind == ErrorKind::peer);
  CHECK_THROWS_AS(metrics.end({}), Error);
  CHECK(list_checkpoints(path).size() == 1);
  CHECK(fs::file_size(first.metrics_path()) == 0);
  CHECK_NOTHROW(second.require_current());
  CHECK(failure_of([&] { RunDirectory(of_start("n1-77-5", 1)); }).find("another trainctl") != std::string::npos);
  test::save(CheckpointStore(path, {.require_current = [&second] { second.require_current(); }}),
             RandomSnapshot(2, 20).snapshot);
  CHECK(list_checkpoints(path).size() == 2);
}

TEST_CASE("a directory that a supervisor keeps is refused to other runs while no rank writes there") {
  const TemporaryFolder parent;
  const std::string path = parent / "run";
  const auto of_launch = [&](const std::string& launch, int number) {
    RunRequest wanted = request(config("6"), path);
    wanted.generation = {launch, number};
    return wanted;
  };
  SupervisorLock supervisor;
  {
    RunDirectory first(of_launch("n1-77-5", 1));
    first.claim(config("6"));
    save(first);
    REQUIRE(supervisor.take(path, "n1-77-5"));
  }
  const std::string before = read_text(path + "/lock");
  for (const char* launch : {"", "n1-78-5"}) {
    ErrorKind kind{};
    const std::string text = failure_of([&] { RunDirectory(of_launch(launch, 2)); }, &kind);
    CHECK(kind == ErrorKind::config);
    CHECK(contains(text, "another trainctl is running in this directory: process " + std::to_string(getpid())));
    CHECK(contains(text, ", which starts its ranks again"));
    kind = {};
    failure_of([&] { probe_run_directory(path); }, &kind);
    CHECK(kind == ErrorKind::config);
  }
  CHECK(read_text(path + "/lock") == before);
  {
    RunDirectory second(of_launch("n1-77-5", 2));
    CHECK(second.resumes());
    second.claim(config("6"));
  }
  supervisor.release();
  CHECK_NOTHROW(RunDirectory(of_launch("n1-78-5", 1)));
}

TEST_CASE("a directory is left for a while to a supervisor of another host that may start its ranks again") {
  const TemporaryFolder parent;
  const std::string path = parent / "run";
  Generation launch{"elsewhere-77-5", 1, true};
  const auto lock_by = [&](const Generation& generation) { RunLock(generation).take(path); };
  const auto is_left = [&](const Generation& generation = {"here-78-5", 1}) {
    RunRequest wanted = request(config("6"), path);
    wanted.generation = generation;
    wanted.yields = true;
    try {
      RunDirectory taken(wanted);
      return false;
    } catch (const MayStartAgain& left) {
      CHECK(left.text() == "the run in " + path + " may start again from host elsewhere");
      wanted.yields = false;
      CHECK_NOTHROW(RunDirectory(wanted));
      return true;
    }
  };
  {
    RunRequest first = request(config("6"), path);
    first.generation = launch;
    RunDirectory run(first);
    run.claim(config("6"));
    save(run);
    finish(run, "failed");
  }
  CHECK(is_left());
  CHECK(is_left({}));
  CHECK_FALSE(is_left({"elsewhere-77-5", 2}));
  SupervisorLock seen;  // it saw the directory, and has ended
  REQUIRE(seen.take(path, "elsewhere-77-5"));
  seen.release();
  CHECK_FALSE(is_left());
  fs::remove(path + "/supervisor");
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"/lock", "/metrics.jsonl", "/log.txt"}) fs::last_write_time(path + name, past);
  CHECK_FALSE(is_left());
  lock_by({"elsewhere-77-5", 1});  // it does not start its ranks again after a failure
  CHECK_FALSE(is_left());
  lock_by(launch);
  CHECK(is_left());
  fs::remove(path + "/config.yaml");
  fs::rename(path + "/checkpoints", parent / "checkpoints");
  fs::rename(path + "/metrics.jsonl", parent / "metrics.jsonl");
  CHECK(is_left());  // although there is no run yet
  write_file(path + "/config.yaml", to_yaml(config("6")));
  fs::rename(parent / "checkpoints", path + "/checkpoints");
  fs::rename(parent / "metrics.jsonl", path + "/metrics.jsonl");
  EndEvent end;
  end.status = "stopped";
  MetricsJsonl(path + "/metrics.jsonl", Duration::steps(1)).end(end);
  CHECK_FALSE(is_left());
}

TEST_CASE("a file system without locks is named once, when the directory is taken") {
  const TemporaryFolder parent;
  const std::string path = parent / "run";
  RunRequest wanted = request(config("6"), path);
  wanted.generation = {"elsewhere-77-5", 1, true};
  {
    RunDirectory run(wanted);
    run.claim(config("6"));
    save(run);
  }
  wanted.generation = {};
  const int terminal = dup(STDERR_FILENO), file = open((parent / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  dup2(file, STDERR_FILENO);
  fail_flock(true);
  int waits = 0;
  for (const bool yields : {true, true, false}) {
    wanted.yields = yields;
    try {
      RunDirectory run(wanted);
      run.claim(config("6"));
    } catch (const MayStartAgain&) {
      ++waits;
    }
  }
  fail_flock(false);
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  close(file);
  CHECK(waits == 2);
  const std::string text = read_text(parent / "log");
  const std::string warning = "a second run in this directory cannot be prevented";
  CHECK(contains(text, warning));
  CHECK(text.find(warning) == text.rfind(warning));
}

TEST_CASE("a run does not wait for a directory that it will not use") {
  const WorkingFolder folder;
  {
    RunRequest first = request(config("6"));
    first.generation = {"elsewhere-77-5", 1, true};
    RunDirectory run(first);
    run.claim(config("6"));
    save(run);
  }
  const auto next = [](const char* batch_size, bool may_resume) {
    RunRequest wanted = request(config(batch_size), {}, may_resume);
    wanted.yields = true;
    return wanted;
  };
  CHECK_THROWS_AS(RunDirectory(next("6", true)), MayStartAgain);
  CHECK(RunDirectory(next("6", false)).path() == "runs/digits-2");
  CHECK(contains(failure_of([&] { RunDirectory{next("7", true)}; }), "there is an unfinished run of another config"));
}

}  // namespace trainctl::test::run_directory_test
