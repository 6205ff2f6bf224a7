// Tests which compute copies are fresh after a step and after other changes of weights, also if programs share them.
#include "core/exec/fresh_copies.h"

#include "core/compile/memory_plan.h"
#include "test/catch.h"

namespace trainctl::fresh_copies_test {
namespace {

struct Maker {
  PlacedProgram placed;

  // Has the parameters "kernel", which trains, and "frozen".
  Maker() {
    placed.program.tensors = {{.name = "kernel", .type = {{8}, DType::float32}, .role = Role::parameter},
                              {.name = "frozen", .type = {{8}, DType::float32}, .role = Role::parameter}};
    placed.program.flat.parameters = {{0, no_tensor, 0, 8, true}, {1, no_tensor, 8, 8, true}};
    placed.program.flat.parameter_count = 16;
    placed.program.flat.trainable_count = 8;
    placed.segments = {{Phase::copies, {}, {}}};
    placed.copies_segment = 0;
    placed.tensors.resize(2);
  }
  Maker& copy(TensorId parameter, const std::string& format, bool updated) {
    Tensor copy = placed.program.tensor(parameter);
    copy.name += "/copy:" + format;
    copy.role = Role::copy;
    placed.copies.push_back({static_cast<TensorId>(placed.program.tensors.size()), parameter, updated});
    placed.program.tensors.push_back(copy);
    placed.tensors.push_back({{DType::bfloat16, format, 16}});
    return *this;
  }
};

}  // namespace

TEST_CASE("compute copies are fresh until the weights change, unless the update writes them") {
  constexpr int training = 0, evaluation = 1;
  std::vector<PlacedProgram> programs{Maker().copy(0, "a", true).copy(1, "a", false).placed,
                                      Maker().copy(0, "b", false).copy(0, "a", false).placed};
  place_tensors(programs, {});
  FreshCopies copies(programs);
  const auto fresh = [&] {
    return std::vector<bool>{copies.is_fresh(training, 0), copies.is_fresh(training, 1), copies.is_fresh(evaluation, 0),
                             copies.is_fresh(evaluation, 1)};
  };
  CHECK(fresh() == std::vector<bool>{false, false, false, false});
  copies.written(training, 1);
  copies.written(evaluation, 0);
  copies.written(evaluation, 1);
  CHECK(fresh() == std::vector<bool>{true, true, true, true});  // both programs share the copy "a" of "kernel"
  copies.trained(training);
  CHECK(fresh() == std::vector<bool>{true, true, false, true});  // frozen copies stay fresh, "b" is not written
  copies.changed();
  CHECK(fresh() == std::vector<bool>{false, false, false, false});
}

}  // namespace trainctl::fresh_copies_test
