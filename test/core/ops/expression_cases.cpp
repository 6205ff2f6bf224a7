// The cases of test/golden/expressions.jsonl: each is an expression and the shapes of what it names.
#include "core/base/files.h"
#include "core/base/json_parse.h"
#include "core/layers/expression/builder.h"
#include "test/core/ops/golden.h"
#include "test/core/ops/op_cases.h"

namespace trainctl::test {
namespace {

TensorId expand(Graph& graph, const std::string& text, const std::vector<std::string>& names,
                const std::vector<TensorId>& ids, std::size_t inputs) {
  ExpressionScope scope;
  scope.dtype = graph.compute;
  for (std::size_t i = 0; i < ids.size(); ++i) scope.tensors[names[i]] = {ids[i], i < inputs};
  scope.append = [&](std::shared_ptr<const OpDef> def, std::vector<TensorId> of) {
    return graph.outputs[0] = graph.add_op(std::move(def), std::move(of), "expression", {})[0];
  };
  scope.type_of = [&](TensorId id) { return graph.tensor(id).type; };
  ExpressionBuilder builder(scope);
  return graph.outputs[0] = builder.tensor(builder.evaluate(parse_expression(text)));
}

}  // namespace

const std::vector<OpCase>& expression_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> made;
    const std::string lines = read_file(Golden::path("expressions.jsonl"), 1 << 20);
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = lines.find('\n', begin);
      const Json of = parse_json(std::string_view(lines).substr(begin, end - begin), SourceLocation{});
      begin = end + 1;
      std::vector<std::string> names;
      for (const auto& [name, shape] : of["inputs"].items()) names.push_back(name);
      const std::size_t inputs = names.size();
      if (of.contains("weights")) {
        for (const auto& [name, shape] : of["weights"].items()) names.push_back(name);
      }
      const std::string text = of["expression"];
      made.push_back({"expression_" + of["name"].get<std::string>(),
                      std::string(inputs, 'x') + std::string(names.size() - inputs, 'p'),
                      [=](Graph& graph, const std::vector<TensorId>& ids) {
                        return std::vector{expand(graph, text, names, ids, inputs)};
                      },
                      of.value("smooth", true)});
    }
    return made;
  }();
  return cases;
}

}  // namespace trainctl::test
