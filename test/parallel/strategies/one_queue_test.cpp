// Tests that no rank of a pipeline waits for ever if each rank runs all of its communications one after the other, as a
// GPU whose streams share one hardware queue does: sends and receives need not be grouped.
#include <algorithm>
#include <memory>
#include <utility>

#include "parallel/strategies/programs.h"
#include "test/core/program/job.h"
#include "test/parallel/strategies/communication_script.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::one_queue_test {
namespace {

constexpr const char* network = R"(layers:
  - conv2d: {filters: 8, kernel_size: 3, padding: same}
  - residual: {name: block, layers: [{conv2d: {filters: 8, kernel_size: 3, padding: same}}, {activation: relu}]}
  - max_pooling2d
  - flatten
  - dense: {units: 16, activation: relu}
  - dense: {units: 16, activation: relu}
  - dense: {units: 3, activation: softmax}
)";

// Makes each communication end before the next op begins. A send then ends only with its receive.
Program in_one_queue(Program program) {
  for (Segment& segment : program.segments) {
    std::erase_if(segment.ops, [](const Op& op) { return op.get_if<Wait>() != nullptr; });
    for (Op& op : segment.ops) {
      if (const auto* send = op.get_if<Send>()) {
        auto now = std::make_shared<Send>(*send);
        now->asynchronous = false;
        op.def = std::move(now);
      } else if (const auto* receive = op.get_if<Receive>()) {
        auto now = std::make_shared<Receive>(*receive);
        now->asynchronous = false;
        op.def = std::move(now);
      } else if (const auto* reduce = op.get_if<AllReduce>()) {
        auto now = std::make_shared<AllReduce>(*reduce);
        now->asynchronous = false;
        op.def = std::move(now);
      }
    }
  }
  return program;
}

std::vector<Program> programs_of(const Mesh& mesh, PipelineSchedule schedule, int micro_batches) {
  static const TestJob job(network);
  Strategy strategy{mesh, {}, true};
  strategy.options.schedule = schedule;
  strategy = with_stages(job, std::move(strategy));
  std::vector<Program> programs;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    Reader reader;
    programs.push_back(
        in_one_queue(training_program(job.spec, {2, micro_batches}, reader, parallelism(strategy, rank))));
    reader.throw_if_failed();
  }
  return programs;
}

std::string problem_of_programs(const Mesh& mesh, const std::vector<Program>& programs) {
  std::vector<const Program*> all;
  for (const Program& program : programs) all.push_back(&program);
  return problem_of(mesh, all).text;
}

bool is_message(const Program& program, const ScheduleItem& item) {
  return program.segment(item.segment).phase == Phase::exchange && !program.segment(item.segment).ops.empty();
}

}  // namespace

TEST_CASE("a pipeline finishes its step if each rank runs its communications one after the other") {
  for (const PipelineSchedule schedule : {PipelineSchedule::one_forward_one_backward, PipelineSchedule::gpipe}) {
    for (const Mesh& mesh :
         {Mesh{.pipeline = 2}, Mesh{.pipeline = 3}, Mesh{.pipeline = 4}, Mesh{.data = 2, .pipeline = 2},
          Mesh{.pipeline = 2, .tensor = 2}, Mesh{.data = 2, .pipeline = 3, .tensor = 2}}) {
      for (const int micro_batches : {1, 2, 4, 7}) {
        CAPTURE(static_cast<int>(schedule), mesh.data, mesh.pipeline, mesh.tensor, micro_batches);
        const std::vector<Program> programs = programs_of(mesh, schedule, micro_batches);
        CHECK(std::count_if(programs[0].schedule.begin(), programs[0].schedule.end(), [&](const ScheduleItem& item) {
                return is_message(programs[0], item);
              }) >= 2 * micro_batches);
        CHECK(problem_of_programs(mesh, programs) == "");
      }
    }
  }
}

// The reason is the common order of all messages: a stage that leaves it must be found to wait for ever.
TEST_CASE("a stage that sends an activation before it receives the gradient that comes first waits for ever") {
  const Mesh mesh{.pipeline = 2};
  std::vector<Program> programs = programs_of(mesh, PipelineSchedule::one_forward_one_backward, 4);
  std::vector<ScheduleItem>& schedule = programs[0].schedule;
  const auto receives = [&](const ScheduleItem& item) {
    return is_message(programs[0], item) && programs[0].segment(item.segment).ops.front().get_if<Receive>() != nullptr;
  };
  const auto receive = std::find_if(schedule.begin(), schedule.end(), receives);
  REQUIRE(receive != schedule.end());
  const auto send = std::find_if(receive + 1, schedule.end(), [&](const ScheduleItem& item) {
    return is_message(programs[0], item) && programs[0].segment(item.segment).ops.front().get_if<Send>() != nullptr;
  });
  REQUIRE(send != schedule.end());
  std::iter_swap(receive, send);
  CHECK(problem_of_programs(mesh, programs).find("wait for each other") != std::string::npos);
}

}  // namespace trainctl::one_queue_test
