// Expands an expression into ops.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/expression/scalar_graph.h"
#include "core/expression/syntax.h"
#include "core/graph/op.h"
#include "core/graph/ops/elementwise/random_numbers.h"
#include "core/graph/ops/reduce.h"

namespace trainctl {

// A tensor that an expression may name.
struct ExpressionTensor {
  TensorId tensor = no_tensor;
  bool has_samples = true;  // whether dimension 0 is that of the samples; false for weights
};

// What an expression is expanded for.
struct ExpressionScope {
  std::map<std::string, ExpressionTensor> tensors;  // by name
  DType dtype = DType::float32;                     // of the results
  // Appends an op with one output, and returns the output.
  std::function<TensorId(std::shared_ptr<const OpDef>, std::vector<TensorId>)> append;
  std::function<TensorType(TensorId)> type_of;
  // For random numbers: returns the samples' numbers and the step. Null: the expression has no random numbers.
  std::function<std::vector<TensorId>()> samples_and_step;
  std::uint64_t seed = 0;
  std::string path;  // the place of the expression in the model
};

// A value in an expression. A tensor is a value of the builder's elementwise program until an op needs it.
struct ExpressionOperand {
  enum class Kind { tensor, number, boolean, list, text, samples, none };
  Kind kind = Kind::none;
  int column = 0;                        // of the expression that gave it
  double number = 0;                     // number, boolean
  std::string text;                      // text
  std::vector<ExpressionOperand> items;  // list; samples: the tensor of whose samples it is the number
  TensorId weight = no_tensor;           // of a weight that nothing has been computed from yet; it has no step
  int step = -1;                         // of a tensor or a number: in the elementwise program
  Shape shape;                           // of a tensor
  bool has_samples = false;              // of a tensor: whether dimension 0 is that of the samples
  // Of a tensor: whether an op that reads it alone computes in float32, whatever the dtype of the scope, so that whole
  // numbers stay exact.
  bool exact = false;

  bool is_tensor() const { return kind == Kind::tensor; }
  std::int64_t rank() const { return shape.rank(); }
};

class ExpressionBuilder {
 public:
  // `scope` must outlive the object.
  explicit ExpressionBuilder(const ExpressionScope& scope) : scope_(scope) {}

  // Gives a value a name, besides the tensors of the scope.
  void define(const std::string& name, ExpressionOperand value) { defined_[name] = std::move(value); }
  // A tensor as an operand.
  ExpressionOperand input(TensorId tensor, bool has_samples) { return of_tensor(tensor, has_samples, 1); }
  // Throws ExpressionError for unknown names and functions, and for shapes that do not fit.
  ExpressionOperand evaluate(const Expression& expression);
  // Returns the tensor of an operand: in the scope's dtype if it has samples, otherwise in float32.
  TensorId tensor(const ExpressionOperand& operand);

  // Evaluates an expression with names of its own.
  ExpressionOperand evaluate(const Expression& expression, const std::map<std::string, ExpressionOperand>& locals);

  // For the functions of expressions (core/layers/expression/functions.h). Shapes have the dimension of samples.
  ExpressionOperand apply(ScalarFunction function, const std::vector<ExpressionOperand>& operands, int column);
  ExpressionOperand number(double value, int column);
  // The same tensor, as an input of what follows, so that it is computed once.
  ExpressionOperand stored(const ExpressionOperand& of);
  // The same tensor in float32, so that reductions and changes of shape keep whole numbers exact.
  ExpressionOperand exact(const ExpressionOperand& of);
  // A tensor with the values of `of` and another shape of as many elements.
  ExpressionOperand reshaped(const ExpressionOperand& of, Shape shape);
  // x times a weight [in..., out...] or, if `transposed`, [out..., in...], which must be a weight itself. The result
  // has one dimension for all of `out`.
  ExpressionOperand product(const ExpressionOperand& x, const ExpressionOperand& weight, bool transposed, int column);
  // The rows of a weight [rows, columns] whose numbers are an int32 input of the layer. No value for other operands.
  std::optional<ExpressionOperand> rows(const ExpressionOperand& weight, const ExpressionOperand& numbers, int column);
  // Random numbers of shape [samples of x, sample...], others for each call.
  ExpressionOperand random(RandomNumbers::Kind distribution, const ExpressionOperand& x, Shape sample, int column);
  // The output of an op on materialized operands. Equal ops with equal operands are one op.
  ExpressionOperand op(std::shared_ptr<const OpDef> def, const std::vector<ExpressionOperand>& inputs, int column);
  // The sum (times `scale`) or the extreme over the dimensions `axes`, ascending, which have size 1 with `keep` and
  // otherwise are left out.
  ExpressionOperand reduced(const ExpressionOperand& x, ReduceKind kind, const std::vector<int>& axes, bool keep,
                            double scale, int column);

 private:
  ExpressionOperand name(const Expression& expression);
  ExpressionOperand subscript(const Expression& expression);
  int input_of(TensorId tensor);
  TensorId tensor_in(const ExpressionOperand& operand, DType dtype);

  ExpressionOperand of_tensor(TensorId tensor, bool has_samples, int column);
  // The operand itself, or for a weight the tensor with its values that all programs read: their gradients are added
  // before they reach the weight.
  ExpressionOperand computable(const ExpressionOperand& of);

  const ExpressionScope& scope_;
  const std::map<std::string, ExpressionOperand>* locals_ = nullptr;
  ScalarGraph graph_;
  std::map<std::string, ExpressionOperand> defined_;
  std::vector<TensorId> tensors_;        // the inputs of the elementwise program
  std::map<TensorId, TensorId> copies_;  // of weights
  std::map<TensorId, TensorId> narrow_;  // of tensors without samples: without leading dimensions of size 1
  std::map<std::pair<int, DType>, TensorId> materialized_;                      // key: step
  std::map<std::pair<std::string, std::vector<TensorId>>, TensorId> computed_;  // key: kind and attributes, inputs
  int drawn_ = 0;                                                               // number of calls of random()
};

// Text such as "(batch, 28, 3)" for messages.
std::string shape_text(const ExpressionOperand& operand);

}  // namespace trainctl
