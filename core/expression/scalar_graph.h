// Builds programs of elementwise functions, and their gradients.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/expression/elementwise_program.h"

namespace trainctl {

// Collects the values of programs. Equal values are one step, constants are folded, signs and constant factors are
// joined, and x + 0, 1 * x and the like are x.
class ScalarGraph {
 public:
  ScalarGraph() = default;
  // Steps have the same numbers as in the program, which a ScalarGraph made.
  explicit ScalarGraph(const ElementwiseProgram& program);

  int of_input(int index);
  int of_constant(double value);
  int apply(ScalarFunction function, int a, int b = -1, int c = -1);
  // The gradients of the sum over r of seeds[r] * roots[r] with respect to the inputs [0, inputs); -1 for those on
  // which the roots do not depend. A value that is not smooth has the derivative that TensorFlow gives it: 0 for steps
  // such as floor() and comparisons; where maximum(a, b) or minimum(a, b) has equal operands, a counts.
  std::vector<int> gradients(std::span<const int> roots, std::span<const int> seeds, int inputs);
  const ScalarStep& step(int number) const { return steps_[static_cast<std::size_t>(number)]; }
  // The steps on which the results depend, as a program of the graph's inputs.
  ElementwiseProgram program(std::span<const int> results) const;

 private:
  int number_of(const ScalarStep& step);
  std::optional<double> constant_of(int number) const;
  std::optional<int> simplified(ScalarFunction function, int a, int b, int c);
  std::optional<int> simplified_power(int base, double exponent);
  std::optional<int> simplified_product(double factor, int x);
  // Of two values that are no constants: constant factors are moved out of products, and joined.
  std::optional<int> simplified_product(int a, int b);
  // The constant factor of a product and the other factor; 1 and the value itself if there is none.
  std::pair<double, int> factor_of(int number) const;
  // The base and the exponent of the products x * x and x * x * x; for others the value itself and 1.
  std::pair<int, int> small_power(int number) const;
  // The product of a value and the seed of a gradient.
  int scaled(int value, int seed);
  // The derivative of a step with respect to its operand, times `seed`.
  int slope(int number, int operand, int seed);

  std::vector<ScalarStep> steps_;
  std::map<ScalarStep, int> numbers_;
};

}  // namespace trainctl
