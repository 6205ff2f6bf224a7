// Compares Muon's steps with Keras'; test/golden/make_muon.py makes the values.
#include "core/graph/ops/optimizers/optimizers.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"
#include "test/core/ops/golden.h"

namespace trainctl::test::muon_test {
namespace {

struct Case {
  const char* name;
  Muon rule;
  float weight_decay = 0;
  bool excludes_tall = false;  // the tall matrix takes AdamW's steps, too
};

// The parameters in the order of the golden file: their sizes, and whether their steps are orthogonalized. They begin
// at multiples of 4 elements.
struct Parameter {
  Shape shape;
  bool orthogonal;
};
std::vector<Parameter> parameters_of(const Case& which) {
  return {{{5, 9}, true}, {{9, 4}, !which.excludes_tall}, {{7}, false}, {{6, 3}, false}};
}

std::vector<UpdateRange> ranges_of(const Case& which) {
  std::vector<UpdateRange> ranges;
  std::int64_t offset = 0;
  for (const auto& [shape, orthogonal] : parameters_of(which)) {
    const std::int64_t count = round_up(shape.count(), 4);
    ranges.push_back({offset, count, true, {}, orthogonal ? shape : Shape{}});
    offset += count;
  }
  return ranges;
}

// The flat region with the values of all parameters, which `values` has without gaps from `first` on.
Value region_of(const Case& which, const std::vector<double>& values, std::size_t first) {
  std::vector<double> region;
  for (const auto& [shape, orthogonal] : parameters_of(which)) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    region.insert(region.end(), begin, begin + shape.count());
    region.resize(static_cast<std::size_t>(round_up(std::ssize(region), 4)));
    first += static_cast<std::size_t>(shape.count());
  }
  return row(region);
}

}  // namespace

TEST_CASE("muon takes Keras' steps") {
  const auto backend = backend_under_test({.threads = 2});
  const Golden golden("muon.safetensors");
  const Case cases[] = {
      {"muon", Muon{}},
      {"muon_plain", Muon{.momentum = 0.75f, .nesterov = false, .ns_steps = 3, .rms_rate = 0}},
      {"muon_decay", Muon{.adam_beta_1 = 0.75f, .adam_beta_2 = 0.9375f, .epsilon = 1e-3f, .adam_lr_ratio = 0.5f}, 0.25f,
       true},
  };
  for (const Case& which : cases) {
    const std::string name = which.name;
    const auto update = std::make_shared<OptimizerUpdate>(which.rule);
    update->ranges = ranges_of(which);
    update->weight_decay = which.weight_decay;
    const Value gradients = golden.at(name + "/gradients"), after = golden.at(name + "/after");
    Value weights = region_of(which, golden.at(name + "/before").values, 0);
    const Value zero = row(std::vector<double>(weights.values.size()));
    std::vector<Value> regions{weights, zero, zero};
    const auto elements = static_cast<std::size_t>(gradients.type.shape[1]);
    for (std::size_t step = 0; step < static_cast<std::size_t>(gradients.type.shape[0]); ++step) {
      CAPTURE(name, step);
      const Value gradient = region_of(which, gradients.values, step * elements);
      const auto inputs = [&](double not_finite) {
        return std::vector<Value>{gradient,  scalar(0.0625),       scalar(static_cast<double>(step), DType::int64),
                                  scalar(1), row({not_finite, 0}), scalar(1)};
      };
      const auto skipped = run_op(*backend, update, inputs(1), regions);
      for (std::size_t i = 0; i < regions.size(); ++i) CHECK(skipped[i].values == regions[i].values);
      regions = run_op(*backend, update, inputs(0), regions);
      CHECK(largest_error(regions[0], region_of(which, after.values, step * elements).values) < 5e-6);
    }
  }
}

}  // namespace trainctl::test::muon_test
