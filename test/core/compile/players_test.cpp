// Tests that the update of a player writes the compute copies of its own parameters, at their places.
#include <map>
#include <set>

#include "core/compile/lower.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::compile_players_test {
namespace {

// Kernels that read matrices as bfloat16, on a device whose updates write the copies.
class CopiedKernels final : public Kernels {
 public:
  void prepare(const Program&) override {}
  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs) override {
    Lowering lowering;
    const bool copies = op.def->kind() != "optimizer" && op.def->kind() != "reorder";
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Tensor& tensor = program.tensor(op.inputs[i]);
      const bool kernel = copies && tensor.role == Role::parameter && tensor.type.shape.rank() > 1;
      lowering.inputs.push_back(kernel ? logical_layout({tensor.type.shape, DType::bfloat16}) : inputs[i]);
    }
    for (TensorId id : op.outputs) lowering.outputs.push_back(logical_layout(program.tensor(id).type));
    return lowering;
  }
  bool updates_copies() const override { return true; }
  bool adds_gradients() const override { return true; }
  bool on_host() const override { return false; }
};

}  // namespace

TEST_CASE("the update of a player writes the copies of its own parameters") {
  TestJob job(R"({layers: [
    {flatten: {name: pixels}},
    {dense: {name: make1, units: 5}},
    {dense: {name: make2, units: 128}},
    {dense: {name: judge1, units: 7}},
    {dense: {name: judge2, units: 1}},
    {dense: {name: judge1, from: pixels, units: 7}},
    {dense: {name: judge2, units: 1}},
    {dense: {name: classes, from: judge1, units: 3}}],
    add_loss: {
      judge: {from: [judge2@2, judge2@1], inputs: [r, f], expression: 'softplus(-r) + softplus(f)'},
      make: {from: judge2@1, expression: softplus(-x)}}})");
  const auto player = [&](const std::string& name, std::vector<Reference> losses, std::vector<Reference> trains) {
    return ProgramSpec::Player{name, std::move(losses), std::move(trains), job.spec.optimizer};
  };
  job.spec.players = {player("judge", {{"judge", {}}, {"output", {}}}, {{"judge*", {}}, {"classes", {}}}),
                      player("make", {{"make", {}}}, {{"make*", {}}})};
  CopiedKernels kernels;
  const PlacedProgram placed = lower(job.training(4), kernels);
  std::map<TensorId, TensorId> parameters;  // key: the copy
  for (const ComputeCopy& copy : placed.copies) {
    CHECK(copy.updated);
    parameters[copy.tensor] = copy.parameter;
  }
  CHECK(parameters.size() == 5);  // the matrices of five layers
  std::set<TensorId> written;
  for (const PlacedSegment& segment : placed.segments) {
    for (const PlacedOp& op : segment.ops) {
      const auto* update = op.op.get_if<OptimizerUpdate>();
      if (update == nullptr) continue;
      const auto& buckets = placed.program.flat.buckets;
      const auto bucket = std::ranges::find(buckets, op.op.outputs[0], &FlatBucket::parameter);
      REQUIRE(bucket != buckets.end());
      const std::size_t first = op.op.outputs.size() - update->copies.size();
      for (std::size_t i = 0; i < update->copies.size(); ++i) {
        const TensorId parameter = parameters.at(op.op.outputs[first + i]);
        const auto entry = std::ranges::find(placed.program.flat.parameters, parameter, &FlatEntry::parameter);
        CHECK(update->copies[i].offset + bucket->offset == entry->offset);
        CHECK(update->copies[i].offset + entry->count <= bucket->count);
        CHECK(written.insert(parameter).second);
      }
    }
  }
  CHECK(written.size() == 5);
}

}  // namespace trainctl::compile_players_test
