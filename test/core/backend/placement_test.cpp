// Compares placement rules with kernels: for all placements of an op's inputs on two ranks, the kernel runs on each
// rank's shards, and its results, combined by the rule's output placements, must be those of the whole tensors.
#include "core/graph/placement_rules.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "test/catch.h"
#include "test/core/backend/placement_cases.h"

namespace trainctl::test::placement_test {
namespace {

double tolerance(DType dtype) { return dtype == DType::float32 ? 1e-4 : 0.04; }

// Returns a rank's half of the value along a dimension.
Value half(const Value& whole, int dimension, int rank) {
  Value part = whole;
  part.type.shape[dimension] /= 2;
  std::int64_t inner = 1;
  for (std::int64_t d = dimension; d < part.type.shape.rank(); ++d) inner *= part.type.shape[d];
  part.values.clear();
  for (auto from = whole.values.begin() + rank * inner; from < whole.values.end(); from += 2 * inner) {
    part.values.insert(part.values.end(), from, from + inner);
  }
  return part;
}

// Returns what one of two ranks holds of the whole value.
Value part_of(const Value& whole, const Placement& placement, int rank) {
  if (placement.kind == Placement::Kind::split) return half(whole, placement.dimension, rank);
  if (placement != partial) return whole;
  Value summand = on_grid(whole.type, 77);
  for (std::size_t i = 0; i < summand.values.size() && rank == 1; ++i)
    summand.values[i] = whole.values[i] - summand.values[i];
  return summand;
}

TensorType part_type(TensorType whole, const Placement& placement) {
  if (placement.kind == Placement::Kind::split) whole.shape[placement.dimension] /= 2;
  return whole;
}

// Makes the second half of the samples a copy of the first, so that all ranks compute the same statistics.
void repeat_samples(Value& value) {
  const Value first = half(value, 0, 0);
  std::copy(first.values.begin(), first.values.end(), value.values.begin() + std::ssize(first.values));
}

// Returns all placements that a tensor may have.
std::vector<Placement> placements_of(const TensorType& type) {
  std::vector<Placement> all{replicated, varying};
  if (is_floating(type.dtype)) all.push_back(partial);
  for (int d = 0; d < type.shape.rank(); ++d) {
    if (type.shape[d] % 2 == 0) all.push_back(split_along(d));
  }
  return all;
}

// Calls visit for every combination of the inputs' placements.
template <class Visit>
void each_combination(const PlacementCase& which, const Visit& visit) {
  std::vector<std::vector<Placement>> choices;
  for (const CaseInput& input : which.inputs) choices.push_back(placements_of(input.type));
  std::vector<std::size_t> at(choices.size(), 0);
  for (bool more = true; more;) {
    std::vector<Placement> inputs;
    for (std::size_t i = 0; i < at.size(); ++i) inputs.push_back(choices[i][at[i]]);
    visit(inputs);
    more = false;
    for (std::size_t i = 0; i < at.size() && !more; ++i) {
      more = ++at[i] < choices[i].size();
      if (!more) at[i] = 0;
    }
  }
}

struct Answer {
  OutputPlacements placements;
  std::shared_ptr<const OpDef> part;  // the op that each rank runs; null if there is no such op
};

std::vector<TensorType> types_of(const PlacementCase& which) {
  std::vector<TensorType> types;
  for (const CaseInput& input : which.inputs) types.push_back(input.type);
  return types;
}

Answer ask(const PlacementCase& which, const std::vector<Placement>& inputs) {
  const std::vector<TensorType> whole = types_of(which);
  std::vector<TensorType> types, outputs = which.make(whole)->outputs(whole);
  for (std::size_t i = 0; i < inputs.size(); ++i) types.push_back(part_type(whole[i], inputs[i]));
  std::shared_ptr<const OpDef> part;
  try {
    part = which.make(types);
    outputs = part->outputs(types);
  } catch (const Error&) {
    part = nullptr;
  }
  const std::shared_ptr<const OpDef> asked = part ? part : which.make(whole);
  return {asked->placements({MeshAxis::data, inputs, types, outputs, {}, {}, {}}), part};
}

std::string in_words(const std::vector<Placement>& placements) {
  std::string text;
  for (const Placement& placement : placements) text += (text.empty() ? "" : ", ") + to_string(placement);
  return text;
}

void check_whole(const Value& whole, const Value& first, const Value& second, const Placement& placement, double tol) {
  Value together = first;
  if (placement == partial) {
    for (std::size_t i = 0; i < second.values.size(); ++i) together.values[i] += second.values[i];
  } else if (placement.kind == Placement::Kind::split) {
    CHECK(largest_error(first, half(whole, placement.dimension, 0).values) < tol);
    together = second;
    CHECK(largest_error(together, half(whole, placement.dimension, 1).values) < tol);
    return;
  } else {
    CHECK(largest_error(second, whole.values) < tol);
  }
  CHECK(largest_error(together, whole.values) < tol);
}

void check_values(Backend& backend, KernelChoices& choices, const PlacementCase& which,
                  const std::vector<Placement>& inputs, const Answer& answer) {
  const std::vector<Placement>& outputs = answer.placements.outputs;
  std::vector<Value> whole;
  for (const CaseInput& input : which.inputs) whole.push_back(input.value(whole.size()));
  const auto varies = [](const std::vector<Placement>& list) {
    return std::find(list.begin(), list.end(), varying) != list.end();
  };
  for (std::size_t i = 0; i < whole.size() && (varies(inputs) || varies(outputs)); ++i) {
    if (inputs[i] == split_along(0)) repeat_samples(whole[i]);
  }
  const auto def = which.make(types_of(which));
  const std::vector<TensorType> results = def->outputs(types_of(which));
  REQUIRE(results.size() == outputs.size());
  std::vector<Value> held;
  // The values are not negative, since some outputs are mean squares.
  for (const TensorType& type : results) held.push_back(on_grid(type, 50 + held.size(), 0));
  std::vector<Value> parts[2];
  for (const int rank : {0, 1}) {
    std::vector<Value> given, before;
    for (std::size_t i = 0; i < whole.size(); ++i) given.push_back(part_of(whole[i], inputs[i], rank));
    for (std::size_t i = 0; i < held.size(); ++i) before.push_back(part_of(held[i], outputs[i], rank));
    parts[rank] = compute(backend, choices, answer.part, given, before);
  }
  const std::vector<Value> expected = compute(backend, choices, def, whole, held);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!which.compares && (varies(inputs) || varies(outputs))) continue;
    CAPTURE(i, to_string(outputs[i]));
    check_whole(expected[i], parts[0][i], parts[1][i], outputs[i], tolerance(which.computes_in));
  }
}

OutputPlacements ask_one(const OpDef& def, std::vector<Placement> inputs, std::vector<TensorType> types,
                         std::vector<std::optional<Placement>> held = {}, MeshAxis axis = MeshAxis::data) {
  const std::vector<TensorType> outputs = def.outputs(types);
  return def.placements({axis, inputs, types, outputs, held, {}, {}});
}

}  // namespace

TEST_CASE("kernels compute the right results for all placements that rules accept") {
  const auto backend = backend_under_test({.threads = 1});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  KernelChoices choices;
  for (const PlacementCase& which : placement_cases(dtype)) {
    std::vector<std::string> accepted;
    each_combination(which, [&](const std::vector<Placement>& inputs) {
      const Answer answer = ask(which, inputs);
      if (!answer.placements.problem.empty()) return;
      CAPTURE(which.name, name_of(dtype), in_words(inputs), in_words(answer.placements.outputs));
      accepted.push_back(in_words(inputs) + " -> " + in_words(answer.placements.outputs));
      REQUIRE(answer.part != nullptr);
      check_values(*backend, choices, which, inputs, answer);
    });
    std::string ways;
    for (const std::string& way : accepted) ways += "\n  " + way;
    INFO(which.name << " on " << name_of(dtype) << ways);
    CHECK(static_cast<int>(accepted.size()) == which.ways);
  }
}

TEST_CASE("every op is among the cases") {
  std::set<std::string> covered{"agree"};  // tested below
  for (const PlacementCase& which : placement_cases(DType::float32))
    covered.emplace(which.make(types_of(which))->kind());
  const std::regex kind(R"re(kind\(\) const override \{ return "(\w+)"; \})re");
  int found = 0;
  const std::filesystem::path ops = TRAINCTL_SOURCE_DIR "/core/graph/ops";
  if (!std::filesystem::exists(ops)) return;  // the program of a bundle runs without the sources
  for (const auto& file : std::filesystem::recursive_directory_iterator(ops)) {
    // Collectives have no kernels. Ops on whole batches belong to the data axis and are tested with the strategies.
    const bool communicates = file.path().stem() == "collectives" || file.path().stem() == "whole_batch";
    if (file.path().extension() != ".h" || communicates) continue;
    std::ifstream stream(file.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    for (std::sregex_iterator match(text.begin(), text.end(), kind), end; match != end; ++match, ++found) {
      CAPTURE((*match)[1].str());
      CHECK(covered.contains((*match)[1].str()));
    }
  }
  CHECK(found >= 40);
}

TEST_CASE("the sum of a flag over the ranks is above zero if a rank set it") {
  const auto backend = backend_under_test();
  const Agree agree;
  for (const Placement& loss : {replicated, partial, varying}) {
    CHECK(ask_one(agree, {loss, varying}, {scalar(0).type, scalar(0).type}).outputs == std::vector{partial});
  }
  CHECK(ask_one(agree, {replicated, replicated}, {scalar(0).type, scalar(0).type}).outputs == std::vector{replicated});
  for (const double stop : {0.0, 1.0}) {
    const auto calm = run_op(*backend, std::make_shared<Agree>(), {scalar(1.5), scalar(0)})[0];
    const auto asks = run_op(*backend, std::make_shared<Agree>(), {scalar(0.25), scalar(stop)})[0];
    CHECK((calm.values[agree_stop] + asks.values[agree_stop] > 0) == (stop > 0));
    CHECK(calm.values[agree_not_finite] + asks.values[agree_not_finite] == 0);
  }
}

TEST_CASE("an op that adds to an output requires that the output has the placement of the added values") {
  const TensorType x{{4, 6}, DType::float32}, dy{{4, 2}, DType::float32};
  const std::vector<Placement> inputs{split_along(0), split_along(0)};
  const auto asked = [&](bool accumulate, std::optional<Placement> held) {
    return ask_one(DenseGradWeights(false, accumulate), inputs, {x, dy}, {held}).problem;
  };
  CHECK(asked(true, partial).empty());
  CHECK(asked(true, replicated) == "output 0 is replicated, but the values added to it are partial");
  CHECK(asked(true, std::nullopt) == "an op adds to output 0 before any op writes it");
  CHECK(asked(false, replicated).empty());
  CHECK(asked(false, std::nullopt).empty());
  // Parameters and their gradients have the same placement.
  OptimizerUpdate update(Sgd{});
  update.ranges = {{0, 8, true}};
  const TensorType region{{8}, DType::float32}, scalar{{}, DType::float32}, flags{{agree_flags}, DType::float32};
  const std::vector<TensorType> types{region, scalar, {{}, DType::int64}, scalar, flags, scalar};
  const auto updated = [&](const Placement& gradient, const Placement& parameter) {
    std::vector<Placement> given(types.size(), replicated);
    given[0] = gradient;
    return ask_one(update, given, types, {parameter}).problem;
  };
  CHECK(updated(replicated, replicated).empty());
  CHECK(updated(split_along(0), split_along(0)).empty());
  CHECK(updated(split_along(0), replicated) ==
        "output 0 is replicated, but the values added to it are split along dimension 0");
  CHECK(updated(partial, replicated) == "input 0 cannot be partial");
}

TEST_CASE("error texts of placement rules name the input and the problem") {
  const TensorType x{{4, 6}, DType::float32}, kernel{{6, 8}, DType::float32}, bias{{8}, DType::float32};
  CHECK(ask_one(Add(), {partial, replicated}, {x, x}).problem == "partial and replicated tensors are added");
  CHECK(ask_one(Dense(), {split_along(1), split_along(0), replicated}, {x, kernel, bias}).problem ==
        "input 2 is replicated where input 0 is split along dimension 1");
  CHECK(ask_one(Dense(), {split_along(0), replicated, replicated}, {x, kernel, bias}).problem.empty());
  CHECK(ask_one(Softmax(), {split_along(1)}, {x}).problem == "input 0 cannot be split along dimension 1");
  CHECK(ask_one(Activation({ActivationKind::relu}), {partial}, {x}).problem == "input 0 cannot be partial");
}

TEST_CASE("a reshape keeps a split along the outermost of the dimensions that it merges or divides") {
  const auto asked = [](Shape from, Shape to, int dimension) {
    const OutputPlacements result =
        ask_one(Reshape(std::move(to)), {split_along(dimension)}, {{std::move(from), DType::float32}});
    return result.problem.empty() ? result.outputs[0] : replicated;
  };
  CHECK(asked({8, 4, 6}, {8, 24}, 0) == split_along(0));
  CHECK(asked({8, 4, 6}, {8, 24}, 1) == split_along(1));
  CHECK(asked({8, 4, 6}, {8, 24}, 2) == replicated);  // rows of both ranks alternate
  CHECK(asked({8, 24}, {8, 4, 6}, 1) == split_along(1));
  CHECK(asked({4, 6}, {8, 3}, 0) == split_along(0));
  // A batch of one sample.
  CHECK(asked({1, 4, 6}, {1, 24}, 0) == split_along(0));
  CHECK(asked({1, 4, 6}, {1, 24}, 1) == split_along(1));
  CHECK(asked({1, 4, 6}, {4, 6}, 0) == split_along(0));
  CHECK(asked({1, 4, 6}, {4, 6}, 2) == split_along(1));
  CHECK(asked({5, 1}, {5}, 1) == replicated);
  // A split along the last dimension, if both shapes have the same rows.
  CHECK(asked({8, 1, 1, 6}, {8, 6}, 3) == split_along(1));
  CHECK(asked({8, 6}, {2, 4, 6}, 1) == split_along(2));
  CHECK(asked({8, 6}, {8, 1, 1, 6}, 1) == split_along(3));
}

}  // namespace trainctl::test::placement_test
