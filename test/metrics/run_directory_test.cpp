// Which directory a run takes, and who may write there.
#include "io/metrics/run_directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include "io/metrics/metrics_jsonl.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"
#include "test/checkpoint/support.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

// The working directory, given back with the object: the default directories are relative to it.
struct WorkingFolder {
  TemporaryFolder folder;
  fs::path before = fs::current_path();
  WorkingFolder() { fs::current_path(folder.path); }
  ~WorkingFolder() { fs::current_path(before); }
};

Node config(const std::string& batch_size, const std::string& ranks = "auto") {
  Reader reader;
  const std::string text =
      "name: digits\ntrain:\n  batch_size: " + batch_size + "\n  epochs: 5\ncluster:\n  ranks: " + ranks;
  const Node node = parse_yaml(text, "digits.yaml", "/", reader);
  reader.throw_if_failed();
  return node;
}

RunRequest request(Node node, const std::string& stated = {}, bool may_resume = true) {
  return {"digits", stated, may_resume, std::move(node)};
}

void finish(const RunDirectory& run, const std::string& status = "completed") {
  EndEvent end;
  end.status = status;
  MetricsJsonl(run.metrics_path(), Duration::steps(1)).end(end);
}

ErrorKind kind_of_refusal(const FoundRun& found, bool stated, bool may_resume) {
  ErrorKind kind = ErrorKind::internal;
  CHECK(failure_of([&] { decide(found, stated, may_resume, "runs/a"); }, &kind).find("runs/a: ") == 0);
  return kind;
}

}  // namespace

TEST_CASE("which directory a run takes") {
  using State = FoundRun::State;
  for (const bool stated : {false, true}) {
    for (const bool may_resume : {false, true}) {
      CHECK(decide({State::nothing, {}}, stated, may_resume, "runs/a") == RunVerdict::start);
      CHECK(kind_of_refusal({State::foreign, {}}, stated, may_resume) == ErrorKind::config);
    }
    CHECK(decide({State::unfinished, {}}, stated, true, "runs/a") == RunVerdict::resume);
    CHECK(kind_of_refusal({State::unfinished, {"seed: 1 before, 2 now"}}, stated, true) == ErrorKind::config);
  }
  CHECK(decide({State::finished, {}}, false, true, "runs/a") == RunVerdict::look_elsewhere);
  CHECK(decide({State::finished, {"x"}}, false, true, "runs/a") == RunVerdict::look_elsewhere);
  CHECK(decide({State::finished, {}}, false, false, "runs/a") == RunVerdict::look_elsewhere);
  CHECK(decide({State::unfinished, {}}, false, false, "runs/a") == RunVerdict::look_elsewhere);
  CHECK(decide({State::finished, {}}, true, true, "runs/a") == RunVerdict::is_finished);
  CHECK(kind_of_refusal({State::finished, {}}, true, false) == ErrorKind::config);
  CHECK(kind_of_refusal({State::unfinished, {}}, true, false) == ErrorKind::config);
}

TEST_CASE("a run is started, resumed when unfinished, and given a new directory when finished") {
  const WorkingFolder working;
  {
    const RunDirectory run(request(config("64")));
    CHECK(run.path() == "runs/digits");
    CHECK_FALSE(run.resumes());
    Reader reader;
    CHECK(differences(load_yaml("runs/digits/config.yaml", environment(), reader), config("64")).empty());
    CHECK(fs::exists("runs/digits/log.txt"));
  }
  write_text("runs/digits/.partial-1-config.yaml", "left by a killed writer");
  {
    const RunDirectory run(request(config("64", "4")));  // other ranks: the same run
    CHECK(run.path() == "runs/digits");
    CHECK(run.resumes());
    CHECK_FALSE(fs::exists("runs/digits/.partial-1-config.yaml"));
    finish(run, "stopped");
  }
  {
    const RunDirectory run(request(config("64")));
    CHECK(run.resumes());
    finish(run);
  }
  {
    const RunDirectory run(request(config("128")));
    CHECK(run.path() == "runs/digits-2");
    CHECK_FALSE(run.resumes());
  }
  CHECK(RunDirectory(request(config("128"))).path() == "runs/digits-2");
  CHECK(RunDirectory(request(config("128"), "", false)).path() == "runs/digits-3");
}

TEST_CASE("an unfinished run of another config is refused with the differences") {
  const WorkingFolder working;
  { const RunDirectory run(request(config("64"))); }
  const std::string before = read_text("runs/digits/config.yaml");
  ErrorKind kind{};
  const std::string text = failure_of([] { RunDirectory run(request(config("128"))); }, &kind);
  CHECK(kind == ErrorKind::config);
  CHECK(contains(text, "runs/digits: an unfinished run of another config"));
  CHECK(contains(text, "train.batch_size: 64"));
  CHECK(contains(text, "128"));
  CHECK(read_text("runs/digits/config.yaml") == before);
  CHECK_NOTHROW(RunDirectory(request(config("64"))));  // the lock was given back
}

TEST_CASE("a stated directory is taken, left when finished, and refused when it holds other things") {
  const WorkingFolder working;
  {
    const RunDirectory run(request(config("64"), "mine/here"));
    CHECK(run.path() == "mine/here");
    finish(run);
  }
  const RunDirectory again(request(config("64"), "mine/here"));
  CHECK(again.is_finished());
  CHECK_FALSE(again.resumes());
  fs::create_directory("photos");
  write_text("photos/cat.jpg", "cat");
  ErrorKind kind{};
  CHECK(contains(failure_of([] { RunDirectory run(request(config("64"), "photos")); }, &kind), "photos: "));
  CHECK(kind == ErrorKind::config);
  kind = {};
  CHECK(contains(failure_of([] { RunDirectory run(request(config("64"), "photos/cat.jpg")); }, &kind), "cannot write"));
  CHECK(kind == ErrorKind::resource);
}

TEST_CASE("a run directory has one writer") {
  const WorkingFolder working;
  const RunDirectory run(request(config("64")));
  ErrorKind kind{};
  const std::string text = failure_of([] { RunDirectory second(request(config("64"))); }, &kind);
  CHECK(kind == ErrorKind::config);
  CHECK(contains(text, "runs/digits: another trainctl is running there: process " + std::to_string(getpid())));
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
