// Shapes, placements and gradients of matrix products of activations.
#include "core/graph/ops/matmul.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// Whether two shapes are equal in all dimensions before the last two.
bool have_equal_batches(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (std::int64_t k = 0; k + 2 < a.rank(); ++k) {
    if (a[k] != b[k]) return false;
  }
  return true;
}

std::string in_order(char first, char second, bool transposed) {
  return transposed ? std::string{second, first} : std::string{first, second};
}

}  // namespace

MatmulSizes::MatmulSizes(const Matmul& def, const Shape& a, const Shape& b)
    : rows(a[a.rank() - (def.transpose_a ? 1 : 2)]),
      inner(a[a.rank() - (def.transpose_a ? 2 : 1)]),
      columns(b[b.rank() - (def.transpose_b ? 2 : 1)]) {
  batch = 1;
  for (std::int64_t k = 0; k + 2 < a.rank(); ++k) batch *= a[k];
}

std::string Matmul::attributes() const {
  return AttributeText().flag("transpose_a", transpose_a).flag("transpose_b", transpose_b).text();
}

std::vector<TensorType> Matmul::outputs(std::span<const TensorType> inputs) const {
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  require(inputs.size() == 2 && a.rank() >= 3 && have_equal_batches(a, b) && inputs[0].dtype == inputs[1].dtype,
          "matmul: a and b do not have the same first dimensions and dtype");
  const MatmulSizes sizes(*this, a, b);
  require(b[b.rank() - (transpose_b ? 1 : 2)] == sizes.inner, "matmul: the summed dimensions of a and b differ");
  Shape y = a;
  y[y.rank() - 2] = sizes.rows;
  y[y.rank() - 1] = sizes.columns;
  return {{y, inputs[0].dtype}};
}

// The product is linear in each operand while the other one is whole.
OutputPlacements Matmul::placements(const PlacementQuery& query) const {
  std::string batch = rows(query.input_types[0]);
  batch.pop_back();
  const std::string a = batch + in_order('x', 'z', transpose_a), b = batch + in_order('z', 'y', transpose_b);
  const bool b_is_partial = query.inputs[1] == partial;
  return place_by({{a + (b_is_partial ? "" : "+S"), b + (b_is_partial ? "+S" : "")}, {batch + "xy+zS"}}, query);
}

double Matmul::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  const MatmulSizes sizes(*this, inputs[0].shape, inputs[1].shape);
  return 2.0 * static_cast<double>(outputs[0].shape.count()) * static_cast<double>(sizes.inner);
}

// With A = op(a) and B = op(b): dA = dy B^T and dB = A^T dy. The gradient of a transposed operand is the transposed
// product.
void Matmul::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]), a = op.inputs[0], b = op.inputs[1];
  const auto product = [&](TensorId left, bool transpose_left, TensorId right, bool transpose_right) {
    return differentiator.emit(std::make_shared<Matmul>(transpose_left, transpose_right), {left, right}, op)[0];
  };
  if (differentiator.needs_gradient(a)) {
    differentiator.contribute(a, transpose_a ? product(b, transpose_b, dy, true) : product(dy, false, b, !transpose_b));
  }
  if (differentiator.needs_gradient(b)) {
    differentiator.contribute(b, transpose_b ? product(dy, true, a, transpose_a) : product(a, !transpose_a, dy, false));
  }
}

}  // namespace trainctl
