// Tests that matching communications of all ranks are accepted, and that each kind of mismatch is refused with its
// ranks and ops.
#include "parallel/strategies/communication_check/check.h"

#include <algorithm>

#include "parallel/strategies/communication_check/communications.h"
#include "parallel/strategies/programs.h"
#include "test/core/program/job.h"
#include "test/parallel/strategies/communication_script.h"

namespace trainctl::communication_check_test {
namespace {

using Kind = Communication::Kind;
constexpr MeshAxis data_axis = MeshAxis::data, pipeline_axis = MeshAxis::pipeline, tensor_axis = MeshAxis::tensor;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr const char* network = R"(layers:
  - conv2d: {name: c1, filters: 8, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1}
  - activation: relu
  - max_pooling2d
  - residual: {name: block, layers: [{conv2d: {filters: 8, kernel_size: 3, padding: same}}, batch_normalization]}
  - flatten
  - dropout: {name: drop, rate: 0.25}
  - dense: {name: d1, units: 16, activation: relu}
  - dense: {name: d2, units: 3, activation: softmax}
)";

Strategy strategy_of(const Mesh& mesh, bool overlap, std::int64_t bucket_bytes = 400) {
  Strategy strategy{mesh, {}, overlap};
  strategy.options.first_bucket_size.bytes = 100;
  strategy.options.bucket_size.bytes = bucket_bytes;
  return strategy;
}

std::vector<RunPrograms> all_programs(const TestJob& job, const BatchSizes& sizes, const Strategy& strategy) {
  std::vector<RunPrograms> programs;
  for (const int rank : ranks_with_own_programs(sizes, strategy.mesh)) {
    Reader reader;
    programs.emplace_back(job.spec, strategy, sizes, rank, reader);
    reader.throw_if_failed();
  }
  return programs;
}

Program training(std::int64_t samples, int micro_batches, const Strategy& strategy) {
  Reader reader;
  Program program = training_program(TestJob(network).spec, {samples / micro_batches, micro_batches}, reader,
                                     parallelism(strategy, 0));
  reader.throw_if_failed();
  return program;
}

// The positions of the all_reduces of a program: segment and op.
std::vector<std::pair<std::size_t, std::size_t>> reductions(const Program& program) {
  std::vector<std::pair<std::size_t, std::size_t>> positions;
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    for (std::size_t i = 0; i < program.segments[s].ops.size(); ++i) {
      if (program.segments[s].ops[i].get_if<AllReduce>() != nullptr) positions.emplace_back(s, i);
    }
  }
  return positions;
}

}  // namespace

TEST_CASE("every step of data parallelism finishes") {
  const TestJob job(network);
  const Mesh mesh = GENERATE(Mesh{.data = 2}, Mesh{.data = 3}, Mesh{.data = 5}, Mesh{.data = 2, .tensor = 2});
  const int accumulation = GENERATE(1, 2, 3);
  for (const bool overlap : {false, true}) {
    // Last batches that leave some ranks without samples, or with different shares.
    for (const std::int64_t last : {1, 2, 7}) {
      const BatchSizes sizes{.training = 2 * accumulation * mesh.data,
                             .training_last = last,
                             .evaluation = 2 * mesh.data + 1,
                             .evaluation_last = 1,
                             .training_resumed_last = last + 1,
                             .gradient_accumulation = accumulation};
      CAPTURE(mesh.data, mesh.tensor, accumulation, overlap, last);
      const std::vector<RunPrograms> programs = all_programs(job, sizes, strategy_of(mesh, overlap));
      CHECK(problem_of([&] { check_steps(programs, sizes, mesh); }).text.empty());
    }
  }
}

TEST_CASE("ranks whose shares differ must reduce the same buckets") {
  const TestJob job(network);
  const BatchSizes sizes{.training = 5, .training_last = 4};
  const Mesh mesh{.data = 2};
  std::vector<RunPrograms> programs = all_programs(job, sizes, strategy_of(mesh, true));
  REQUIRE(programs.size() == 2);
  Reader reader;
  programs[1] = RunPrograms(job.spec, strategy_of(mesh, true, 4000), sizes, 0, reader);
  const Problem problem = problem_of([&] { check_steps(programs, sizes, mesh); });
  CAPTURE(problem.text);
  CHECK(contains(problem.text,
                 "the sizes of communications that meet on the data axis differ: rank 0 is at all_reduce 'bucket 2'"));
  CHECK(contains(problem.text, "of 'train 2"));
  CHECK(contains(problem.text, "rank 1 is at all_reduce 'bucket 2' in backward of 'train 3"));
  CHECK(problem.location.known());
}

TEST_CASE("the communications of a program are its reductions and waits in order") {
  for (const int micro_batches : {1, 2, 3}) {
    const Program program = training(6, micro_batches, strategy_of({.data = 2, .tensor = 2}, true));
    const std::vector<Communication> all = communications_of(program);
    std::vector<Communication> list;
    std::copy_if(all.begin(), all.end(), std::back_inserter(list),
                 [](const Communication& communication) { return communication.axis == data_axis; });
    const std::size_t buckets = list.size() / 2;
    REQUIRE(buckets >= 3);
    REQUIRE(list.size() == 2 * buckets);
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
      CHECK(list[i].kind == Kind::all_reduce);
      CHECK(list[i].axis == data_axis);
      CHECK(list[i].asynchronous);
      CHECK(list[i].op->name == "bucket " + std::to_string(i));
      CHECK(list[i].item.micro_batch == (i + 1 < buckets ? micro_batches - 1 : 0));
      CHECK(list[buckets + i].kind == Kind::wait);
      CHECK(all[static_cast<std::size_t>(list[buckets + i].awaited)].op == list[i].op);
      elements += list[i].count;
    }
    CHECK(elements >= program.flat.trainable_count);
    // The agreement and the norm on the tensor axis.
    CHECK(all[all.size() - 2].op->name == "agree");
    CHECK(all[all.size() - 2].count == 2);
    CHECK(all.back().op->name == "gradient_squares");
    CHECK(all.back().axis == tensor_axis);
  }
}

TEST_CASE("each change to one replica's reductions is refused") {
  const int micro_batches = GENERATE(1, 3);
  const Mesh mesh{.data = 3};
  const Program program = training(6, micro_batches, strategy_of(mesh, true));
  REQUIRE(problem_of(mesh, {&program, &program, &program}).text.empty());
  const auto positions = reductions(program);
  REQUIRE(positions.size() >= 4);
  const auto broken = [&](auto change) {
    Program changed = program;
    changed.name = "changed";
    change(changed);
    const Problem problem = problem_of(mesh, {&program, &changed, &program});
    CHECK(contains(problem.text, "rank 0"));
    CHECK(contains(problem.text, "rank 1"));
    CHECK(contains(problem.text, "on the data axis"));
    CHECK(contains(problem.text, "'changed'"));
    CHECK(problem.location.known());
    return problem.text;
  };
  for (const auto& [segment, at] : positions) {
    const Op& reduction = program.segments[segment].ops[at];
    const auto bucket = static_cast<std::size_t>(reduction.inputs[0]);
    const std::string name = "all_reduce '" + reduction.name + "'";
    CAPTURE(micro_batches, name);
    const auto op_of = [s = segment, i = at](Program& changed) -> Op& { return changed.segments[s].ops[i]; };

    std::string text = broken([&](Program& changed) { ++changed.tensors[bucket].type.shape[0]; });
    CHECK(contains(text, "the sizes of"));
    CHECK(contains(text, name));
    text = broken([&](Program& changed) { changed.tensors[bucket].type.dtype = DType::bfloat16; });
    CHECK(contains(text, "the dtypes of"));
    CHECK(contains(text, " bfloat16)"));
    text = broken([&](Program& changed) {
      op_of(changed).def = std::make_shared<Broadcast>(data_axis, 0, changed.tensors[bucket].type, true, true);
    });
    CHECK(contains(text, "the kinds of"));
    CHECK(contains(text, "broadcast '" + reduction.name + "'"));
    text = broken([&](Program& changed) { op_of(changed).name = "another"; });
    CHECK(contains(text, "the names of"));

    // Two reductions in the wrong order.
    const auto other = positions[std::pair{segment, at} == positions[0] ? 1 : 0];
    text =
        broken([&](Program& changed) { std::swap(op_of(changed), changed.segments[other.first].ops[other.second]); });
    CHECK(contains(text, name));
    CHECK(contains(text, "differ"));
    // A reduction is missing, with its wait.
    text = broken([&, s = segment, i = at](Program& changed) {
      std::vector<Op>& ops = changed.segments[s].ops;
      ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
      for (Segment& any : changed.segments) {
        std::erase_if(any.ops, [&](const Op& op) {
          return op.get_if<Wait>() != nullptr && static_cast<std::size_t>(op.inputs[0]) == bucket;
        });
      }
    });
    CHECK(contains(text, name));
    if (reduction.name == "bucket " + std::to_string(positions.size() - 1)) {
      CHECK(contains(text, "and waits for rank 1, whose program 'changed' has no collective for it on the data axis"));
      CHECK(contains(text, "rank 0 is at wait 'bucket "));
    }
  }
}

TEST_CASE("the ranks of a collective must agree on its size, root and group") {
  const Mesh mesh{.data = 2};
  const auto same = [&](const Script& a, const Script& b) { return problem_of(mesh, std::vector{a, b}).text; };
  CHECK(same(Script().gather("g", data_axis, 2, 8), Script().gather("g", data_axis, 2, 8)).empty());
  CHECK(contains(same(Script().gather("g", data_axis, 2, 8), Script().gather("g", data_axis, 2, 9)),
                 "(16 float32), and rank 1 is at all_gather 'g' in forward of 'step' (18 float32)"));
  CHECK(contains(same(Script().gather("g", data_axis, 2, 8), Script().gather("g", data_axis, 2, 8, DType::float16)),
                 "the dtypes of"));
  CHECK(contains(same(Script().scatter("g", data_axis, 2, 8), Script().gather("g", data_axis, 2, 8)), "the kinds of"));
  CHECK(contains(same(Script().scatter("g", data_axis, 3, 8), Script().scatter("g", data_axis, 3, 8)),
                 "reduce_scatter 'g' in forward of 'step': it is made for 3 ranks, and the data axis has 2 ranks"));
  CHECK(same(Script().broadcast("b", data_axis, 1, 8), Script().broadcast("b", data_axis, 1, 8)).empty());
  CHECK(contains(same(Script().broadcast("b", data_axis, 1, 8), Script().broadcast("b", data_axis, 0, 8)),
                 "the roots of"));
  CHECK(contains(same(Script().broadcast("b", data_axis, 2, 8), Script().broadcast("b", data_axis, 2, 8)),
                 "it names rank 2 along the axis, and the data axis has 2 ranks"));
  CHECK(contains(same(Script().send("s", pipeline_axis, 1), Script()), "and the pipeline axis has one rank"));
  CHECK(contains(same(Script().send("s", data_axis, -1), Script()), "it names rank -1 along the axis"));
}

TEST_CASE("a send without its receive is refused, and so is a receive without its send") {
  const Mesh mesh{.pipeline = 3};
  const Script first = Script().send("cut", pipeline_axis, 1), last = Script().receive("cut2", pipeline_axis, 1);
  const Script middle = Script().receive("cut", pipeline_axis, 0).send("cut2", pipeline_axis, 2);
  CHECK(problem_of(mesh, std::vector{first, middle, last}).text.empty());

  Problem problem = problem_of(mesh, std::vector{first, Script("alone").send("cut2", pipeline_axis, 2), last});
  CHECK(problem.text ==
        "net.yaml:7:3: rank 0 is at send 'cut' in forward of 'step' (100 float32 to rank 1) and waits "
        "for rank 1, whose program 'alone' has no receive for it on the pipeline axis");
  CHECK(problem.location.line == 7);
  problem = problem_of(mesh, std::vector{Script("alone"), middle, last});
  CHECK(contains(problem.text, "rank 1 is at receive 'cut' in forward of 'step' (100 float32 from rank 0) and waits "));
  CHECK(contains(problem.text, "waits for rank 0, whose program 'alone' has no send for it"));
  problem = problem_of(mesh, std::vector{first, middle, Script().receive("cut2", pipeline_axis, 1, 99)});
  CHECK(contains(problem.text,
                 "the sizes of communications that meet on the pipeline axis differ: rank 1 is at send 'cut2'"));
  CHECK(contains(problem.text, "rank 2 is at receive 'cut2' in forward of 'step' (99 float32 from rank 1)"));
  problem = problem_of(mesh, std::vector{Script().send("cut", pipeline_axis, 2), middle, last});
  CHECK(contains(problem.text, "whose program 'step' has no"));
  problem = problem_of(mesh, std::vector{Script().send("cut", pipeline_axis, 0), Script(), Script()});
  CHECK(contains(problem.text, "waits for rank 0, whose program 'step' has no receive"));
  // All ranks do the same, but they send to a single rank, which does not receive.
  const Script to_last = Script().send("cut", pipeline_axis, 2);
  problem = problem_of(mesh, std::vector{to_last, to_last, to_last});
  CHECK(contains(problem.text,
                 "rank 0 is at send 'cut' in forward of 'step' (100 float32 to rank 2) and waits for "
                 "rank 2, whose program 'step' has no receive"));
}

TEST_CASE("a cycle of sends is refused, asynchronous or not, since an axis keeps its order") {
  const Mesh mesh{.pipeline = 3};
  std::vector<Script> ranks;
  const bool asynchronous = GENERATE(false, true);
  for (int r = 0; r < 3; ++r) {
    ranks.push_back(
        Script().send("on", pipeline_axis, (r + 1) % 3, 100, asynchronous).receive("back", pipeline_axis, (r + 2) % 3));
    if (asynchronous) ranks.back().wait("on");
  }
  const std::string text = problem_of(mesh, ranks).text;
  CHECK(contains(text,
                 "the ranks wait for each other: rank 0 is at send 'on' in forward of 'step' (100 float32 to "
                 "rank 1) and waits for rank 1; rank 1 is at send 'on'"));
  CHECK(contains(text, "rank 2 is at send 'on' in forward of 'step' (100 float32 to rank 0) and waits for rank 0"));
  ranks[0] = Script().receive("back", pipeline_axis, 2).send("on", pipeline_axis, 1);
  CHECK(problem_of(mesh, ranks).text.empty());
}

TEST_CASE("collectives of two axes in different orders on some ranks are refused") {
  const Mesh mesh{.data = 2, .tensor = 2};
  const Script data_first = Script().reduce("gradient", data_axis).reduce("output", tensor_axis);
  const Script data_last = Script().reduce("output", tensor_axis).reduce("gradient", data_axis);
  CHECK(problem_of(mesh, std::vector{data_first, data_first, data_first, data_first}).text.empty());
  CHECK(problem_of(mesh, std::vector{data_first, data_last, data_first, data_last}).text.empty());
  const std::string text = problem_of(mesh, std::vector{data_first, data_last, data_last, data_first}).text;
  CHECK(contains(text,
                 "rank 0 is at all_reduce 'gradient' in forward of 'step' (100 float32) and waits for rank 2; "
                 "rank 2 is at all_reduce 'output'"));
  CHECK(contains(text, "rank 3 is at all_reduce 'gradient'"));
  CHECK(contains(text, "rank 1 is at all_reduce 'output' in forward of 'step' (100 float32) and waits for rank 0"));

  // An asynchronous collective blocks its rank only at the wait.
  const Script waits_last =
      Script().reduce("gradient", data_axis, 100, true).reduce("output", tensor_axis).wait("gradient");
  const Script waits_first =
      Script().reduce("gradient", data_axis, 100, true).wait("gradient").reduce("output", tensor_axis);
  CHECK(problem_of(mesh, std::vector{waits_last, data_last, data_last, waits_last}).text.empty());
  CHECK(contains(problem_of(mesh, std::vector{waits_first, data_last, data_last, waits_first}).text,
                 "rank 0 is at wait 'gradient' in forward of 'step' for all_reduce 'gradient' in forward of 'step' "
                 "(100 float32) and waits for rank 2; rank 2 is at all_reduce 'output'"));
}

TEST_CASE("a wait without its communication is refused, and so is an asynchronous communication without its wait") {
  const Mesh mesh{.data = 2};
  const Script early = Script().reduce("x", data_axis).wait("x");
  CHECK(contains(
      problem_of(mesh, std::vector{early, early}).text,
      "wait 'x' in forward of 'step': no earlier asynchronous communication writes the tensor that it waits for"));
  const Script without = Script().reduce("x", data_axis, 100, true);
  CHECK(contains(problem_of(mesh, std::vector{without, without}).text,
                 "all_reduce 'x' in forward of 'step': it is asynchronous, and no op waits for it"));
}

namespace {

// The communications of a pipeline stage: all forward passes, then all backward passes.
Script stage(int number, int count, int micro_batches, bool swapped = false) {
  Script script("stage " + std::to_string(number));
  for (int m = 0; m < micro_batches; ++m) {
    if (number > 0) script.receive("in", pipeline_axis, number - 1, 10 + (swapped && m < 2 ? 1 - m : m));
    script.reduce("split", tensor_axis, 5);
    if (number + 1 < count) script.send("out", pipeline_axis, number + 1, 10 + m);
  }
  for (int m = 0; m < micro_batches; ++m) {
    if (number + 1 < count) script.receive("out", pipeline_axis, number + 1, 10 + m);
    script.reduce("split", tensor_axis, 5);
    if (number > 0) script.send("in", pipeline_axis, number - 1, 10 + m);
  }
  return script.reduce("bucket", data_axis, 1000, true).reduce("agree", pipeline_axis, 2).wait("bucket");
}

}  // namespace

TEST_CASE("a pipeline on thousands of ranks finishes, and a single wrong rank is named") {
  const Mesh mesh{.data = 128, .pipeline = 8, .tensor = 16};
  std::vector<Script> scripts;
  for (int s = 0; s < 8; ++s) scripts.push_back(stage(s, 8, 4));
  const Script swapped = stage(5, 8, 4, true);
  std::vector<const Program*> programs;
  for (int r = 0; r < mesh.ranks(); ++r) {
    programs.push_back(&scripts[static_cast<std::size_t>(mesh.position(r).pipeline)].program());
  }
  CHECK(problem_of(mesh, programs).text.empty());
  const int wrong = mesh.rank({.data = 77, .pipeline = 5, .tensor = 9});
  programs[static_cast<std::size_t>(wrong)] = &swapped.program();
  const std::string text = problem_of(mesh, programs).text;
  CHECK(contains(text, "the sizes of communications that meet on the pipeline axis differ"));
  CHECK(contains(text, "rank " + std::to_string(wrong) + " is at receive 'in' in forward of 'stage 5' (11 float32"));
  CHECK(contains(text,
                 "rank " + std::to_string(mesh.rank({.data = 77, .pipeline = 4, .tensor = 9})) + " is at send 'out'"));
}

}  // namespace trainctl::communication_check_test
