// Changes texts of expressions at random: each is expanded, or refused with the column of a mistake.
#include <cctype>
#include <cstdlib>
#include <random>

#include "core/base/checked.h"
#include "core/graph/graph.h"
#include "core/layers/expression/builder.h"
#include "core/layers/expression/functions.h"
#include "test/catch.h"

namespace trainctl::testing::expression_mutation_test {
namespace {

const std::vector<std::string> texts = {
    "einsum('bij,bkj->bik', x, y) @ einsum('...ij->...ij', x)",
    "einsum('bij,jk->bik', x, w) + x @ w - sum(einsum('bhi,hij->bhj', x, v), axis=-1, keepdims=True)",
    "where(x > 0.5, tanh(x) * w[0], y ** 2) // (1 + softplus(y)) % 3",
    "sum(x, axis=(1, 2), keepdims=True) + max(y, axis=-1)[:, :, None] - mean(w)",
    "concatenate([x[:, 1:3], stack([x, y], axis=1)[:, 0, ...]], axis=1)",
    "pad(x, ((0, 0), (1, 2), (0, 3)), mode='constant', constant_values=0.5)[:, :3, -4:] * y",
    "split(x, [1, 2], axis=-1)[1] + split(y, 2, axis=2)[0][..., :1]",
    "mean(x, 1, True) + exp(0.5 * y) * keras.random.normal(shape(y), stddev=2)",
    "random_uniform((shape(x)[0], 3, 4), minval=-1) + roll(x, -2, axis=1) * tile(repeat(x, 2, axis=1), (1, 1, 1))[:, "
    ":3]",
    "reshape(transpose(swapaxes(moveaxis(x, 1, -1), 1, 2), (0, 2, 1)), (-1, 12))[:, :4] * w[None, 2]",
    "logsumexp(x, axis=-1, keepdims=True) + l2_normalize(y) * norm(x, axis=2, keepdims=True) + softmax(x, axis=1)",
    "gelu(x, approximate=False) + clip(x, -1, 1) * squeeze(expand_dims(y, 1), 1) & ~isnan(x) | (x == y)",
};

class Texts {
 public:
  explicit Texts(std::uint32_t seed) : random_(seed) {}

  std::string next() {
    std::string text = texts[below(texts.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  // Removes, repeats, replaces or inserts a part.
  void change(std::string& text) {
    static const std::string characters = "xywv0123456789-+*/%@,:=()[]'.\"&|~<> _bijkN\n#";
    static const std::vector<std::string> names = expression_functions();
    static const std::vector<std::string> words = {"None",   "True",     "axis=",    "-1",   "0",
                                                   "...",    "'bij->b'", "99999999", "1e30", "shape(x)",
                                                   "[x, y]", "(1, 2)",   "w",        "x"};
    const std::size_t at = below(text.size() + 1), length = std::min(below(6), text.size() - at);
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), 1 + below(12)));
        break;
      case 2:
        text.insert(at, names[below(names.size())] + "(");
        break;
      case 3:
        text.replace(at, length, words[below(words.size())]);
        break;
      case 4:
        text.insert(at, 1, characters[below(characters.size())]);
        break;
      default: {  // another function instead of one
        const std::size_t open = text.find('(', at);
        if (open == std::string::npos) break;
        std::size_t begin = open;
        while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_'))
          --begin;
        text.replace(begin, open - begin, names[below(names.size())]);
      }
    }
  }

  std::mt19937 random_;
};

// Returns whether the text is an expression. Throws for anything but a mistake with a column.
bool expands(const std::string& text) {
  Graph graph;
  graph.batch = 5;
  ExpressionScope scope;
  const auto add = [&](const char* name, Shape shape, DType dtype) {
    return graph.add_tensor({.name = name, .type = {std::move(shape), dtype}, .role = Role::input});
  };
  scope.tensors["x"] = {add("x", {5, 3, 4}, DType::float32), true};
  scope.tensors["y"] = {add("y", {5, 3, 4}, DType::float32), true};
  scope.tensors["w"] = {add("w", {4, 4}, DType::float32), false};
  scope.tensors["v"] = {add("v", {3, 4, 2}, DType::float32), false};
  const TensorId samples = add("samples", {5}, DType::int64), step = add("step", {}, DType::int64);
  scope.samples_and_step = [=] { return std::vector{samples, step}; };
  scope.append = [&](std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs) {
    return graph.add_op(std::move(def), std::move(inputs), "expression", {})[0];
  };
  scope.type_of = [&](TensorId id) { return graph.tensor(id).type; };
  try {
    ExpressionBuilder builder(scope);
    builder.tensor(builder.evaluate(parse_expression(text)));
    return true;
  } catch (const ExpressionError& error) {
    CHECK(error.column() >= 1);
    CHECK(error.column() <= static_cast<int>(text.size()) + 1);
    CHECK(std::string(error.what()).size() > 5);
    return false;
  } catch (const OverflowError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("the texts that are changed are expressions") {
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(expands(text));
  }
}

// TRAINCTL_FUZZ_TEXTS: the number of texts.
TEST_CASE("changed expressions are expanded or refused with a column") {
  const char* count = std::getenv("TRAINCTL_FUZZ_TEXTS");
  Texts changed(7);
  int expanded = 0;
  const int all = count == nullptr ? 3000 : std::atoi(count);
  for (int i = 0; i < all; ++i) {
    const std::string text = changed.next();
    CAPTURE(text);
    try {
      expanded += expands(text) ? 1 : 0;
    } catch (const std::exception& error) {
      FAIL_CHECK("not a mistake with a column: " << error.what());
    }
  }
  CHECK(expanded > all / 100);
  CHECK(expanded < all / 2);
}

}  // namespace trainctl::testing::expression_mutation_test
