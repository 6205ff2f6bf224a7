// Sums of products in expressions: einsum and matmul.
#include <algorithm>
#include <map>

#include "core/base/table.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/matmul.h"
#include "core/layers/expression/call.h"

namespace trainctl::expression {
namespace {

// A tensor with one letter for each dimension.
struct Factor {
  ExpressionOperand value;
  std::string letters;

  std::int64_t size(char letter) const { return value.shape[static_cast<std::int64_t>(letters.find(letter))]; }
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

// The letters that occur, or do not occur, in `others`, in their order.
std::string letters_in(const std::string& letters, const std::string& others, bool in = true) {
  std::string found;
  for (const char letter : letters) {
    if (has(others, letter) == in) found += letter;
  }
  return found;
}

std::int64_t count_of(const Factor& factor, const std::string& letters) {
  std::int64_t count = 1;
  for (const char letter : letters) count *= factor.size(letter);
  return count;
}

// The sum over the letters that do not occur in `kept`.
Factor summed(const FunctionCall& call, const Factor& of, const std::string& kept) {
  std::vector<int> axes;
  for (std::size_t k = 0; k < of.letters.size(); ++k) {
    if (!has(kept, of.letters[k])) axes.push_back(static_cast<int>(k));
  }
  if (axes.empty()) return of;
  return {call.builder.reduced(of.value, ReduceKind::sum, axes, false, 1, call.column), letters_in(of.letters, kept)};
}

// The tensor with its dimensions in the order of `letters`, and size 1 for letters that it does not have.
ExpressionOperand arranged(const FunctionCall& call, const Factor& of, const std::string& letters) {
  std::vector<std::int64_t> order, sizes;
  for (const char letter : letters) {
    const bool known = has(of.letters, letter);
    if (known) order.push_back(static_cast<std::int64_t>(of.letters.find(letter)));
    sizes.push_back(known ? of.size(letter) : 1);
  }
  return call.builder.reshaped(permuted(call.builder, of.value, std::move(order), call.column), Shape(sizes));
}

// The tensor with the dimensions `first`, and one dimension for all letters of `last`.
ExpressionOperand joined(const FunctionCall& call, const Factor& of, const std::string& first,
                         const std::string& last) {
  std::vector<std::int64_t> sizes;
  for (const char letter : first) sizes.push_back(of.size(letter));
  sizes.push_back(count_of(of, last));
  return call.builder.reshaped(arranged(call, of, first + last), Shape(std::move(sizes)));
}

// The product of values with a weight that shares no letter of the result with them.
ExpressionOperand weighted(const FunctionCall& call, const Factor& x, const Factor& weight, const std::string& result) {
  if (weight.value.weight == no_tensor) {
    call.fail("the factor without samples must be a weight itself, not a value that is computed from weights");
  }
  const std::string summed = letters_in(weight.letters, x.letters), made = letters_in(weight.letters, x.letters, false),
                    rows = letters_in(x.letters, summed, false);
  if (weight.letters != summed + made && weight.letters != made + summed) {
    call.fail(format("the summed dimensions of the weight must be its first or its last ones; declare it as {}{}",
                     summed, made));
  }
  const ExpressionOperand y =
      call.builder.product(joined(call, x, rows, summed), weight.value, weight.letters != summed + made, call.column);
  std::vector<std::int64_t> sizes;
  for (const char letter : rows) sizes.push_back(x.size(letter));
  for (const char letter : made) sizes.push_back(weight.size(letter));
  return arranged(call, {call.builder.reshaped(y, Shape(std::move(sizes))), rows + made}, result);
}

// The product of two tensors as matrices, one for each index of the letters that both share with the result.
ExpressionOperand multiplied(const FunctionCall& call, const Factor& a, const Factor& b, const std::string& result) {
  const std::string both = letters_in(a.letters, b.letters), batch = letters_in(both, result),
                    summed = letters_in(both, result, false), rows = letters_in(a.letters, both, false),
                    columns = letters_in(b.letters, both, false);
  std::vector<std::int64_t> sizes;
  for (const char letter : batch) sizes.push_back(a.size(letter));
  const auto matrices = [&](const Factor& of, const std::string& first, const std::string& second) {
    std::vector<std::int64_t> shape = sizes.empty() ? std::vector<std::int64_t>{1} : sizes;
    shape.push_back(count_of(of, first));
    shape.push_back(count_of(of, second));
    return call.builder.reshaped(arranged(call, of, batch + first + second), Shape(std::move(shape)));
  };
  const bool transpose_a = a.letters == batch + summed + rows && !rows.empty(),
             transpose_b = b.letters == batch + columns + summed && !columns.empty();
  const ExpressionOperand left = transpose_a ? matrices(a, summed, rows) : matrices(a, rows, summed),
                          right = transpose_b ? matrices(b, columns, summed) : matrices(b, summed, columns);
  const ExpressionOperand y =
      call.builder.op(std::make_shared<Matmul>(transpose_a, transpose_b), {left, right}, call.column);
  for (const char letter : rows) sizes.push_back(a.size(letter));
  for (const char letter : columns) sizes.push_back(b.size(letter));
  return arranged(call, {call.builder.reshaped(y, Shape(std::move(sizes))), batch + rows + columns}, result);
}

// The sum over the letters that are not in `result` of the product of two tensors.
ExpressionOperand contracted(const FunctionCall& call, Factor a, Factor b, const std::string& result) {
  const std::size_t before = a.letters.size() + b.letters.size();
  a = summed(call, a, b.letters + result);
  b = summed(call, b, a.letters + result);
  const bool was_summed = a.letters.size() + b.letters.size() < before;  // a summed weight is no weight of a product
  const std::string both = letters_in(a.letters, b.letters), over = letters_in(both, result, false);
  const bool has_matrix = both.size() < a.letters.size() || both.size() < b.letters.size();
  if (a.value.has_samples == b.value.has_samples && !over.empty() && has_matrix) {
    return multiplied(call, a, b, result);
  }
  if (a.value.has_samples != b.value.has_samples && both == over && !over.empty() && !was_summed) {
    const bool weight_is_second = a.value.has_samples;
    const Factor &x = weight_is_second ? a : b, &weight = weight_is_second ? b : a;
    if (weight.letters.size() > over.size()) return weighted(call, x, weight, result);
  }
  const ExpressionOperand product = call.builder.apply(
      ScalarFunction::multiply, {arranged(call, a, result + over), arranged(call, b, result + over)}, call.column);
  return summed(call, {product, result + over}, result).value;
}

// Replaces "..." by digits, so that the last dimensions for which it stands have the same digits in all operands.
std::string without_ellipsis(std::string letters, std::int64_t count) {
  const std::size_t at = letters.find("...");
  constexpr std::string_view digits = "0123456789";
  if (at == std::string::npos) return letters;
  const auto from = digits.size() - static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, 10));
  return letters.replace(at, 3, digits.substr(from));
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Fails if a side of an equation has other characters than letters, or a letter twice.
void check_letters(const FunctionCall& call, const std::string& text, const char* of) {
  std::string letters = text;
  if (const std::size_t at = letters.find("..."); at != std::string::npos) letters.erase(at, 3);
  std::sort(letters.begin(), letters.end());
  if (!std::all_of(letters.begin(), letters.end(), is_letter)) {
    call.fail(format("'{}' is not a list of letters such as bij", text));
  }
  const auto twice = std::adjacent_find(letters.begin(), letters.end());
  if (twice != letters.end())
    call.fail(format("'{}' occurs twice in {} '{}', which is not supported", *twice, of, text));
}

// The operands of einsum with their letters, and the letters of the result.
struct Equation {
  std::vector<Factor> factors;
  std::string result;
};

void check_sizes(const FunctionCall& call, const Equation& equation) {
  std::map<char, std::int64_t> sizes;
  std::string samples;
  for (const Factor& of : equation.factors) {
    for (const char letter : of.letters) {
      const auto [known, is_new] = sizes.try_emplace(letter, of.size(letter));
      if (known->second != of.size(letter)) {
        call.fail(format("'{}' has the sizes {} and {}", letter, known->second, of.size(letter)));
      }
    }
    if (of.value.has_samples && !has(samples, of.letters[0])) samples += of.letters[0];
  }
  if (samples.empty()) return;
  if (samples.size() > 1) call.fail("dimension 0, that of the samples, must have the same letter in all tensors");
  for (const Factor& of : equation.factors) {
    if (has(of.letters.substr(of.value.has_samples ? 1 : 0), samples[0])) {
      call.fail(format("'{}' is the letter of the samples, and no other dimension", samples));
    }
  }
  if (!equation.result.starts_with(samples)) {
    call.fail(format("the result must begin with '{}', the letter of the samples", samples));
  }
}

Equation parse_equation(const FunctionCall& call, const std::vector<ExpressionOperand>& operands) {
  if (call.of("subscripts").kind != ExpressionOperand::Kind::text) {
    call.fail("the first argument must be an equation such as 'bij,bjk->bik'");
  }
  std::string text = call.of("subscripts").text;
  std::erase(text, ' ');
  const std::size_t arrow = std::min(text.find("->"), text.size());
  std::string sides = text.substr(0, arrow) + ",", unique;
  Equation equation;
  std::int64_t skipped = 0;
  for (const ExpressionOperand& operand : operands) {
    const std::size_t comma = sides.find(',');
    if (comma == std::string::npos)
      call.fail(format("'{}' has letters for fewer than {}", text, counted(operands.size(), "tensor")));
    const std::string side = sides.substr(0, comma);
    sides.erase(0, comma + 1);
    check_letters(call, side, "the dimensions");
    const bool open = side.find("...") != std::string::npos;
    const std::int64_t named = std::ssize(side) - (open ? 3 : 0), rest = operand.rank() - named;
    if (open ? rest < 0 || rest > 10 : rest != 0) {
      call.fail(format("'{}' does not name the dimensions of {}", side, shape_text(operand)));
    }
    if (open) skipped = std::max(skipped, rest);
    equation.factors.push_back({operand, without_ellipsis(side, rest)});
    for (const char letter : equation.factors.back().letters) {
      if (!is_letter(letter)) continue;
      has(unique, letter) ? unique.erase(unique.find(letter), 1) : unique += letter;
    }
  }
  if (!sides.empty()) call.fail(format("'{}' has letters for more than {} tensors", text, operands.size()));
  std::sort(unique.begin(), unique.end());
  const std::string result = arrow < text.size() ? text.substr(arrow + 2) : (skipped > 0 ? "..." : "") + unique;
  check_letters(call, result, "the result");
  equation.result = without_ellipsis(result, skipped);
  std::string all;
  for (const Factor& of : equation.factors) all += of.letters;
  for (const char letter : letters_in(equation.result, all, false)) {
    call.fail(format("no tensor has the dimension '{}' of the result", letter));
  }
  check_sizes(call, equation);
  return equation;
}

}  // namespace

ExpressionOperand einsum(const FunctionCall& call) {
  std::vector<ExpressionOperand> operands{call.tensor("x1")};
  if (call.of("x2").kind != ExpressionOperand::Kind::none) operands.push_back(call.tensor("x2"));
  const Equation equation = parse_equation(call, operands);
  const Factor& first = equation.factors[0];
  if (operands.size() == 2) return contracted(call, first, equation.factors[1], equation.result);
  return arranged(call, summed(call, first, equation.result), equation.result);
}

ExpressionOperand matmul(const FunctionCall& call) {
  const ExpressionOperand &x = call.tensor("x1"), &y = call.tensor("x2");
  const bool both = x.has_samples && y.has_samples;
  const auto letters = [](std::int64_t count) {
    return std::string("abcdefghijklmnopqrstuvw").substr(0, static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  };
  const std::string batch = letters(y.has_samples ? y.rank() - 2 : x.rank() - 1), column = y.rank() == 1 ? "" : "z";
  std::string of_x = batch + "y", of_y = "y" + column, result = batch + column;
  if (y.has_samples) {
    const std::string row = both || x.rank() == 2 ? "x" : "";
    of_x = (both ? batch : "") + row + "y";
    of_y = batch + "yz";
    result = batch + row + "z";
  }
  if (std::ssize(of_x) != x.rank() || std::ssize(of_y) != y.rank() || (x.has_samples && x.rank() < 2) ||
      (y.has_samples && y.rank() < 3)) {
    call.fail(
        format("{} and {} are not matrices for each sample, or such matrices and a weight of one or two "
               "dimensions",
               shape_text(x), shape_text(y)));
  }
  const Factor left{x, of_x}, right{y, of_y};
  for (const char letter : letters_in(of_x, of_y)) {
    if (left.size(letter) != right.size(letter))
      call.fail(format("{} and {} do not fit", shape_text(x), shape_text(y)));
  }
  return contracted(call, left, right, result);
}

}  // namespace trainctl::expression
