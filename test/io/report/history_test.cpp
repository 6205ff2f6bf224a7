// Tests reading metrics.jsonl: a resume discards later events, an incomplete last line is ignored, and damaged lines
// are errors.
#include "io/report/history.h"

#include <cmath>

#include "io/checkpoint/atomic_file.h"
#include "io/metrics/metrics_jsonl.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::history_test {
namespace {

const std::string start =
    R"({"event":"start","time":1000.5,"version":"1.2","seed":7,"ranks":2,"mesh":[2,1,1],"hosts":["a","b"],)"
    R"("device":"CPU","parameters":1234,"resumed_from":null,"steps_per_epoch":10,"total_steps":40,"first_step":0,)"
    R"("monitor":{"name":"val_accuracy","mode":"max"},"memory":{"parameters":4936,"activations":100}})"
    "\n";

std::string step_line(int step, const std::string& loss) {
  return R"({"event":"step","time":1001,"step":)" + std::to_string(step) + R"(,"epoch":)" +
         std::to_string(step / 10.0) + R"(,"loss":)" + loss +
         R"(,"learning_rate":0.1,"samples_per_second":500,"gradient_norm":2.5,)"
         R"("data_wait_share":0.25,"time_shares":{"forward":0.2,"communication":0.125},"gpu":[{"rank":0,"utilization":0.5,"memory_bytes":2e9},)"
         R"({"rank":1,"utilization":0.7,"memory_bytes":null}]})"
         "\n";
}

std::string epoch_line(int epoch, double accuracy) {
  return R"({"event":"epoch","time":1002,"epoch":)" + std::to_string(epoch) + R"(,"step":)" +
         std::to_string(10 * epoch) + R"(,"train":{"loss":0.5},"validation":{"loss":0.6,"accuracy":)" +
         std::to_string(accuracy) +
         R"(,"confusion_matrix":[[3,1],[0,4]]},"seconds":2})"
         "\n";
}

}  // namespace

TEST_CASE("events of metrics.jsonl are read back") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  CHECK(read_history(path).empty());

  write_file(path, start + step_line(10, "0.75") + epoch_line(1, 0.5) + step_line(20, "\"NaN\"") +
                       epoch_line(2, 0.875) + epoch_line(3, 0.625) + R"({"event":"step","ti)");
  const RunHistory history = read_history(path);
  REQUIRE(history.starts.size() == 1);
  const StartEvent& event = history.starts[0].event;
  CHECK(history.starts[0].time == 1000.5);
  CHECK(event.hosts == std::vector<std::string>{"a", "b"});
  CHECK(event.memory == std::vector<std::pair<std::string, std::int64_t>>{{"parameters", 4936}, {"activations", 100}});
  REQUIRE(history.steps.size() == 2);
  CHECK(history.steps[0].event.loss == 0.75);
  CHECK(history.steps[0].event.data_wait_share == 0.25);
  CHECK(history.steps[0].event.shares.forward == 0.2);
  CHECK(history.steps[0].event.shares.communication == 0.125);
  CHECK(history.steps[0].event.shares.backward == 0);
  CHECK(history.steps[0].gpu_utilization == Approx(0.6));
  CHECK(history.steps[0].gpu_memory_bytes == 2e9);
  CHECK(std::isnan(history.steps[1].event.loss));
  REQUIRE(history.epochs.size() == 3);
  CHECK(history.epochs[1].validation.at("accuracy") == 0.875);
  CHECK(history.epochs[1].validation_tables.at("confusion_matrix") == Table{{3, 1}, {0, 4}});
  CHECK(history.status() == "unfinished");
  CHECK(history.steps_done() == 20);
  const auto best = history.best();
  REQUIRE(best);
  CHECK(best->monitor == "val_accuracy");
  CHECK(best->value == 0.875);
  CHECK(best->step == 20);
  CHECK(history.epoch_at(20) == &history.epochs[1]);
}

TEST_CASE("the start event of a resume discards later steps and the end event") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  std::string again = start;
  again.replace(again.find("\"first_step\":0"), 14, "\"first_step\":10");
  const std::string end =
      R"({"event":"end","time":1003,"status":"stopped","step":20,"epoch":2,"best":null,"train":{},"validation":{},)"
      R"("weights_sha256":"","seconds":9})"
      "\n";
  write_file(path, start + step_line(10, "0.5") + epoch_line(1, 0.5) + step_line(20, "0.4") + epoch_line(2, 0.9) + end +
                       again + step_line(20, "0.3"));
  const RunHistory history = read_history(path);
  CHECK(history.starts.size() == 2);
  REQUIRE(history.steps.size() == 2);
  CHECK(history.steps[1].event.loss == 0.3);
  CHECK(history.epochs.size() == 1);
  CHECK_FALSE(history.end);
  CHECK(history.best()->value == 0.5);
}

TEST_CASE("the events of the writer of metrics.jsonl are read back") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  StartEvent begin;
  begin.version = "3";
  begin.mesh = {1, 1, 1};
  begin.monitor = "val_loss";
  begin.monitor_maximum = false;
  begin.memory = {{"arena", 77}};
  EndEvent end;
  end.status = "completed";
  end.step = 12;
  end.best_monitor = "val_loss";
  end.best_value = 0.125;
  end.best_step = 6;
  {
    MetricsJsonl writer(path, Duration::steps(1));
    writer.start(begin);
    writer.step({.step = 6, .epoch = 0.5, .loss = INFINITY, .gradient_norm = 3});
    writer.epoch({.epoch = 1, .step = 12, .train = {{"loss", 1.5}}, .validation = {}});
    writer.checkpoint({6, "checkpoints/step-6", 0.5, 1000});
    writer.end(end);
  }
  const RunHistory history = read_history(path);
  CHECK(history.starts[0].event.memory == begin.memory);
  CHECK(std::isinf(history.steps[0].event.loss));
  CHECK(history.epochs[0].train.at("loss") == 1.5);
  CHECK(history.checkpoints[0].bytes == 1000);
  CHECK(history.status() == "completed");
  CHECK(history.best()->value == 0.125);
  CHECK_FALSE(history.best()->maximum);
}

TEST_CASE("the error for a line that is not an event names the line") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  for (const std::string line : {"{\"event\":\"step\"}", "nonsense", "[]", "{\"event\":\"start\",\"time\":\"late\"}"}) {
    CAPTURE(line);
    write_file(path, start + line + "\n");
    CHECK_THROWS_WITH(read_history(path), Catch::Matchers::Contains("metrics.jsonl:2"));
  }
}

}  // namespace trainctl::test::history_test
