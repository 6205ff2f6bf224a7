// Tests metrics.jsonl: the fields of each event, which steps are written, and how a resumed run appends to it.
#include "io/metrics/metrics_jsonl.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <limits>
#include <set>

#include "core/base/json.h"
#include "io/metrics/due.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::metrics_jsonl_test {
namespace {

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::set<std::string> fields_of(const nlohmann::json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

bool has(const nlohmann::json& object, const std::set<std::string>& wanted) {
  const auto fields = fields_of(object);
  return std::includes(fields.begin(), fields.end(), wanted.begin(), wanted.end());
}

EndEvent end_event(const std::string& status) {
  EndEvent end;
  end.status = status;
  end.step = 30;
  end.epoch = 1.5;
  end.weights_sha256 = "abc";
  end.seconds = 2.5;
  return end;
}

}  // namespace

TEST_CASE("a step event has the GPUs' readings, with null for unknown values") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsJsonl sink(path, Duration::steps(1));
    GpuReading reading;
    reading.utilization = 0.9;
    reading.memory_bytes = 1e9;
    reading.power_watts = 400;
    reading.clock_mhz = 1500;
    reading.throttled = 0x4;
    const std::vector<GpuSample> gpus = {{0, reading}, {3, GpuReading{}}};
    StepEvent step;
    step.step = 1;
    step.gpus = gpus;
    sink.step(step);
    EndEvent end = end_event("completed");
    end.gpus = {2, 0.9, 800, 1000, 1e9, 0};
    sink.end(end);
  }
  const auto lines = lines_of(path);
  REQUIRE(lines.size() == 2);
  const auto& gpus = lines[0]["gpu"];
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0]["rank"] == 0);
  CHECK(gpus[0]["utilization"] == 0.9);
  CHECK(gpus[0]["memory_bytes"] == 1e9);
  CHECK(gpus[0]["power_watts"] == 400);
  CHECK(gpus[0]["clock_mhz"] == 1500);
  CHECK(gpus[0]["temperature"].is_null());
  CHECK(gpus[0]["throttled"] == nlohmann::json({"power cap"}));
  CHECK(gpus[1]["rank"] == 3);
  CHECK(gpus[1]["utilization"].is_null());
  CHECK(gpus[1]["throttled"].empty());
  CHECK(lines[1]["gpu"]["energy_joules"] == 1000);
}

TEST_CASE("metrics.jsonl has the documented events and fields") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const double before = static_cast<double>(std::time(nullptr));
  {
    MetricsJsonl sink(path, Duration::steps(10));
    sink.start({"1.2", 7, 2, {2, 1, 1}, {"n1", "n2"}, "cpu", "", 1234, "", 20, 40, 0});
    for (int step = 1; step <= 30; ++step) {
      StepEvent event{step, step / 20.0, 1.0 / step, 0.1, 500, 3.5, 0.25};
      event.shares = {0.01, 0.2, 0.4, 0.125, 0.05};
      sink.step(event);
    }
    sink.epoch({1,
                20,
                {{"loss", 0.5}, {"accuracy", 0.75}},
                {{"loss", 0.625}},
                1.5,
                {},
                {{"confusion_matrix", {{3, 1}, {0, 2}}}}});
    sink.checkpoint({20, "runs/x/checkpoints/step-00000020", 0.25, 4096});
    EndEvent end = end_event("completed");
    end.best_monitor = "val_loss";
    end.best_value = 0.625;
    end.best_step = 20;
    sink.end(end);
  }
  const auto lines = lines_of(path);
  REQUIRE(lines.size() == 7);
  for (const auto& line : lines) {
    CHECK(line["time"].get<double>() >= before);
    CHECK(line["time"].get<double>() < before + 600);
  }
  CHECK(lines[0]["event"] == "start");
  CHECK(has(lines[0], {"version", "seed", "ranks", "mesh", "hosts", "device", "parameters", "resumed_from"}));
  CHECK(lines[0]["mesh"] == std::vector<int>{2, 1, 1});
  CHECK(lines[0]["hosts"] == std::vector<std::string>{"n1", "n2"});
  CHECK(lines[0]["resumed_from"].is_null());
  CHECK(lines[2]["event"] == "step");
  CHECK(lines[2]["step"] == 20);
  CHECK(lines[2]["epoch"] == 1.0);
  CHECK(lines[2]["loss"] == 0.05);
  CHECK(lines[2]["learning_rate"] == 0.1);
  CHECK(lines[2]["samples_per_second"] == 500);
  CHECK(lines[2]["gradient_norm"] == 3.5);
  const Json shares = {
      {"upload", 0.01}, {"forward", 0.2}, {"backward", 0.4}, {"communication", 0.125}, {"update", 0.05}};
  CHECK(lines[2]["time_shares"] == shares);
  CHECK(lines[4]["event"] == "epoch");
  CHECK(lines[4]["train"]["accuracy"] == 0.75);
  CHECK(lines[4]["validation"]["loss"] == 0.625);
  CHECK(lines[4]["validation"]["confusion_matrix"] == Json{{3.0, 1.0}, {0.0, 2.0}});
  CHECK(has(lines[4], {"epoch", "step", "seconds"}));
  CHECK(lines[5]["event"] == "checkpoint");
  CHECK(has(lines[5], {"step", "path", "seconds", "bytes"}));
  CHECK(lines[6]["event"] == "end");
  CHECK(has(lines[6], {"status", "step", "epoch", "best", "weights_sha256", "seconds"}));
  CHECK(lines[6]["best"] == nlohmann::json({{"monitor", "val_loss"}, {"value", 0.625}, {"step", 20}}));
  CHECK(final_status(path) == "completed");
}

TEST_CASE("a resumed run removes the incomplete line of a killed run and appends its events") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  CHECK_FALSE(final_status(path));
  {
    MetricsJsonl sink(path, Duration::steps(1));
    sink.end(end_event("stopped"));
    CHECK(final_status(path) == "stopped");
    sink.step({1, 0.5, std::numeric_limits<double>::quiet_NaN(), 0.1, 500, 3.5, 0});
    CHECK_FALSE(final_status(path));
  }
  const std::string whole = read_text(path);
  for (const std::string& torn : {std::string("{\"event\":\"step\",\"ti"), std::string(200000, 'x')}) {
    write_text(path, whole + torn);
    MetricsJsonl(path, Duration::steps(1)).end(end_event("completed"));
    const auto lines = lines_of(path);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0]["status"] == "stopped");
    CHECK(lines[1]["loss"] == "NaN");
    CHECK(lines[2]["status"] == "completed");
    CHECK(final_status(path) == "completed");
  }
  write_text(path, "{\"event\": 5}\n");  // no event that trainctl writes
  CHECK_FALSE(final_status(path));
  write_text(path, "{\"event\": \"end\", \"status\": []}\n");
  CHECK(final_status(path) == "");
  write_text(path, "torn in the first line");
  MetricsJsonl sink(path, Duration::steps(1));
  CHECK(read_text(path).empty());
}

TEST_CASE("a metrics file that cannot be written is a resource error") {
  const TemporaryFolder folder;
  ErrorKind kind{};
  CHECK(contains(failure_of([&] { MetricsJsonl(folder / "none/m", Duration::steps(1)); }, &kind), folder / "none/m"));
  CHECK(kind == ErrorKind::resource);

  MetricsJsonl sink(folder / "m", Duration::steps(1));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  kind = {};
  const std::string text = failure_of(
      [&] {
        for (int i = 0; i < 100; ++i) sink.end(end_event("stopped"));
      },
      &kind);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(contains(text, "cannot write"));
  CHECK(kind == ErrorKind::resource);
}

TEST_CASE("steps are due by steps, epochs and seconds") {
  const auto due_steps = [](Duration every, double epoch_per_step, double seconds_per_step, int first, int last) {
    Due due(every);
    std::vector<int> steps;
    for (int step = first; step <= last; ++step) {
      StepEvent event;
      event.step = step;
      event.epoch = step * epoch_per_step;
      if (due(event, 100 + step * seconds_per_step)) steps.push_back(step);
    }
    return steps;
  };
  using Steps = std::vector<int>;
  CHECK(due_steps(Duration::steps(10), 0.1, 1, 1, 35) == Steps{10, 20, 30});
  CHECK(due_steps(Duration::steps(10), 0.1, 1, 16, 35) == Steps{20, 30});
  CHECK(due_steps(Duration::epochs(1), 0.25, 1, 1, 13) == Steps{4, 8, 12});
  CHECK(due_steps(Duration::epochs(1), 0.25, 1, 7, 13) == Steps{8, 12});
  CHECK(due_steps(Duration::epochs(1), 1.0 / 3, 1, 1, 9) == Steps{3, 6, 9});
  CHECK(due_steps(Duration::epochs(1), 1, 1, 1, 3) == Steps{1, 2, 3});
  CHECK(due_steps(Duration::epochs(0.5), 0.3, 1, 1, 7) == Steps{2, 4, 5, 7});
  CHECK(due_steps(Duration::seconds(3), 0.1, 1, 1, 10) == Steps{4, 7, 10});
}

TEST_CASE("a metrics file that is not a regular file is a data error, and is not waited for") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(symlink("loop", (folder / "loop").c_str()) == 0);
  for (const std::string& path : {folder / "pipe", folder / "loop", std::string("/dev/zero")}) {
    INFO(path);
    try {
      final_status(path);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      CHECK(std::string(error.what()).starts_with(path));
    }
  }
  CHECK_FALSE(final_status(folder / "none"));
}

}  // namespace trainctl::test::metrics_jsonl_test
