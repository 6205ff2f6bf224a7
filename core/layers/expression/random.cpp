// Functions of expressions that draw random numbers.
#include "core/layers/expression/call.h"

namespace trainctl::expression {

namespace {

// Numbers of the shape of a tensor, or of a shape that begins with the number of its samples.
ExpressionOperand random_numbers(const FunctionCall& call, RandomNumbers::Kind distribution) {
  const ExpressionOperand& of = call.of("shape");
  if (of.is_tensor()) {
    if (!of.has_samples) call.fail("the shape is that of a weight, but random numbers differ between samples");
    return call.builder.random(distribution, of, of.shape.without_front(), call.column);
  }
  if (of.kind != ExpressionOperand::Kind::list || of.items.empty() ||
      of.items[0].kind != ExpressionOperand::Kind::samples) {
    call.fail("shape must be a tensor, or a shape that begins with the number of samples, such as (shape(x)[0], 8)");
  }
  std::vector<std::int64_t> sizes;
  for (auto item = of.items.begin() + 1; item != of.items.end(); ++item) {
    sizes.push_back(call.whole(*item, "shape"));
    if (sizes.back() < 1 || sizes.back() > (1 << 30)) {
      call.fail(format("{} is not the size of a dimension", sizes.back()));
    }
  }
  return call.builder.random(distribution, of.items[0].items[0], Shape(std::move(sizes)), call.column);
}

}  // namespace

ExpressionOperand random_normal(const FunctionCall& call) {
  return call.evaluate("z * stddev + mean", {{"z", random_numbers(call, RandomNumbers::Kind::normal)},
                                             {"mean", call.of("mean")},
                                             {"stddev", call.of("stddev")}});
}

ExpressionOperand random_uniform(const FunctionCall& call) {
  return call.evaluate("z * (maxval - minval) + minval", {{"z", random_numbers(call, RandomNumbers::Kind::uniform)},
                                                          {"minval", call.of("minval")},
                                                          {"maxval", call.of("maxval")}});
}

}  // namespace trainctl::expression
