// Makes small graphs for tests, with one call per layer.
#pragma once

#include <string>
#include <vector>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/passes/differentiate.h"

namespace trainctl {

struct GraphMaker {
  Graph graph;

  explicit GraphMaker(Shape input) {
    graph.batch = input[0];
    graph.training = true;
    graph.inputs = graph.outputs = {add("input", std::move(input), Role::input)};
  }
  TensorId add(std::string name, Shape shape, Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = {std::move(shape), DType::float32};
    tensor.role = role;
    return graph.add_tensor(std::move(tensor));
  }
  TensorId parameter(const std::string& name, Shape shape, bool decay) {
    GraphParameter parameter;
    parameter.tensor = add(name, std::move(shape), Role::parameter);
    parameter.decay = decay;
    graph.parameters.push_back(parameter);
    return parameter.tensor;
  }
  TensorId op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const std::string& name,
              std::vector<std::string> suffixes = {}) {
    return graph.outputs[0] = graph.add_op(std::move(def), std::move(inputs), name, {}, std::move(suffixes))[0];
  }
  TensorId dense(const std::string& name, TensorId x, std::int64_t units) {
    const TensorId kernel = parameter(name + "/kernel", {graph.tensor(x).type.shape.back(), units}, true);
    return op(std::make_shared<Dense>(), {x, kernel, parameter(name + "/bias", {units}, false)}, name);
  }
  TensorId conv(const std::string& name, TensorId x, std::int64_t filters) {
    Window window;
    window.size = {3, 3};
    window.padding_before = window.padding_after = {1, 1};
    const TensorId kernel = parameter(name + "/kernel", {3, 3, graph.tensor(x).type.shape.back(), filters}, true);
    return op(std::make_shared<Conv2d>(window, 1), {x, kernel}, name);
  }
  TensorId norm(const std::string& name, TensorId x) {
    const Shape channels{graph.tensor(x).type.shape.back()};
    const TensorId gamma = parameter(name + "/gamma", channels, false);
    const TensorId beta = parameter(name + "/beta", channels, false);
    const TensorId y =
        op(std::make_shared<BatchNorm>(BatchNormAttributes{}), {x, gamma, beta}, name, {"output", "mean", "variance"});
    for (int i : {1, 2}) {
      const std::string statistic = name + (i == 1 ? "/moving_mean" : "/moving_variance");
      graph.statistics.push_back({add(statistic, channels, Role::statistic), y + i});
    }
    return y;
  }
  TensorId activation(const std::string& name, TensorId x, ActivationKind kind) {
    return op(std::make_shared<Activation>(ActivationFunction{kind}), {x}, name);
  }
  TensorId sum(const std::string& name, TensorId a, TensorId b) { return op(std::make_shared<Add>(), {a, b}, name); }

  Backward differentiate(bool accumulate = false) {
    Tensor gradient = graph.tensor(graph.outputs[0]);
    gradient.name = "loss/gradient";
    return trainctl::differentiate(graph, {graph.add_tensor(std::move(gradient))}, accumulate);
  }
};

// "dense activation=relu (input, a/kernel, a/bias) -> (r/output)" for every op.
inline std::vector<std::string> lines(const Graph& graph, const std::vector<Op>& ops) {
  const auto list = [&](const std::vector<TensorId>& ids) {
    std::string text;
    for (TensorId id : ids) text += (text.empty() ? "" : ", ") + graph.tensor(id).name;
    return "(" + text + ")";
  };
  std::vector<std::string> result;
  for (const Op& op : ops) {
    result.push_back(std::string(op.def->kind()) + " " + list(op.inputs) + " -> " + list(op.outputs));
  }
  return result;
}

}  // namespace trainctl
