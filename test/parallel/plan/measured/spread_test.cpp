// Tests that measurements of a busy machine count as missing and are replaced.
#include <algorithm>

#include "core/backend/cpu/cpu_backend.h"
#include "parallel/comm/communicators.h"
#include "parallel/plan/measured/measure_communication.h"
#include "parallel/plan/measured/measure_loading.h"
#include "parallel/plan/measured/measure_step.h"
#include "parallel/plan/measured/repeated.h"
#include "test/catch.h"
#include "test/parallel/plan/measured/rank_of.h"

namespace trainctl::spread_test {
namespace {

// The measurements with `spread` as the spread of each key; if it is negative, without a spread, as earlier versions
// wrote them.
Measurements with_spread(const Measurements& measurements, const std::vector<std::string>& keys, double spread) {
  Measurements changed = measurements;
  for (const std::string& key : keys) {
    std::vector<double> values = *measurements.find(key);
    values.pop_back();
    if (spread >= 0) values.push_back(spread);
    changed.record(key, values);
  }
  return changed;
}

}  // namespace

TEST_CASE("without time left, a step is measured in two passes, which have a spread") {
  const auto backend = make_cpu_backend({});
  const auto alone = solo_communicator();
  const RankOf of({"one rank", convolutions, {}, 0});
  const Compiled ready = compiled(of, *backend);
  int asked = 0;
  const Measurements found = measure_step({ready, 0, of.rank, of.job.spec}, *backend, *alone, *alone, 0.05, [&] {
    ++asked;
    return true;
  });
  CHECK(asked == 3);  // before each of the two passes, and after them
  CHECK(step_spread(found, 1, ready.programs[0]));
}

TEST_CASE("a step whose measurements have a wide spread, or none, is measured again") {
  const auto backend = make_cpu_backend({});
  const auto alone = solo_communicator();
  const RankOf of({"one rank", convolutions, {}, 0});
  const Compiled ready = compiled(of, *backend);
  const PlacedProgram& program = ready.programs[0];
  const Measurements found = measure_step({ready, 0, of.rank, of.job.spec}, *backend, *alone, *alone, 0.05);
  const std::string step = step_key(1, program);
  REQUIRE(found.find(step) != nullptr);
  REQUIRE(step_spread(found, 1, program));
  Measurements calm = found;
  std::vector<std::string> ops{step};
  for (const PlacedSegment& segment : program.segments) {
    for (const PlacedOp& op : segment.ops) {
      if (op.op.def->trait() != OpTrait::kernel || found.find(op_key(1, program, op)) == nullptr) continue;
      if (std::find(ops.begin(), ops.end(), op_key(1, program, op)) == ops.end()) ops.push_back(op_key(1, program, op));
    }
  }
  calm = with_spread(found, ops, 0.01);
  CHECK(has_step(calm, 1, program));
  const Measurements busy = with_spread(calm, {ops.back()}, 0.4);
  CHECK(*step_spread(busy, 1, program) == 0.4);
  CHECK(!has_step(busy, 1, program));
  CHECK(!step_spread(with_spread(calm, {ops.back()}, -1), 1, program));
}

TEST_CASE("quick measurements complete careful ones, and replace those of a busy machine") {
  Measurements careful, quick;
  careful.record("kept", {1, 0.02});
  careful.record("busy", {1, 0.5});
  careful.record("of an earlier version", {1});
  for (const char* key : {"kept", "busy", "of an earlier version", "new"}) quick.record(key, {2, 0.05});
  careful.complete(quick, wide_spread);
  CHECK(careful.find("kept")->front() == 1);
  for (const char* key : {"busy", "of an earlier version", "new"}) CHECK(careful.find(key)->front() == 2);
}

TEST_CASE("the spread of a communication is stored after its sizes, and the model ignores it") {
  Measurements measurements;
  CHECK(!communication_spread(measurements, 2));
  using Kind = Communication::Kind;
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all, Kind::broadcast, Kind::send}) {
    for (const bool shared : {false, true}) {
      measurements.record(communication_key(2, kind, shared), {64, 1e-6, 1e6, 1e-3, 0.04});
    }
  }
  measurements.record(copy_key(2), {64, 1e-6, 1e6, 1e-3, 0.03});
  CHECK(*communication_spread(measurements, 2) == 0.04);
  CHECK(has_communication(measurements, 2));
  CHECK(communication_model(measurements, copy_key(2))->seconds(1e6) == Approx(1e-3));
  measurements.record(copy_key(2), {64, 1e-6, 1e6, 1e-3, 0.3});
  CHECK(!has_communication(measurements, 2));
  measurements.record(copy_key(2), {64, 1e-6, 1e6, 1e-3});
  CHECK(!communication_spread(measurements, 2));
}

TEST_CASE("the time of a sample counts only if its spread is known and not wide") {
  Measurements measurements;
  measurements.record("a", {1e-3, 0.02});
  measurements.record("b", {1e-3, 0.2});
  measurements.record("c", {1e-3});
  CHECK(has_loading(measurements, "a"));
  for (const char* key : {"b", "c", "d"}) CHECK(!has_loading(measurements, key));
}

}  // namespace trainctl::spread_test
