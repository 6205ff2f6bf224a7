// Translates the ops of a graph by the table of translations.
#include "io/onnx/network.h"

#include <set>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/graph/ops/recurrent.h"
#include "io/onnx/ops/ops.h"

namespace trainctl {
namespace {

using Translate = void (*)(const OnnxOp&);

const std::map<std::string_view, Translate>& translations() {
#define TRAINCTL_ENTRY(kind) {#kind, onnx::kind},
  static const std::map<std::string_view, Translate> table{TRAINCTL_EXPORTED_OPS(TRAINCTL_ENTRY)
                                                               TRAINCTL_EXPORTED_VIEWS(TRAINCTL_ENTRY)};
#undef TRAINCTL_ENTRY
  return table;
}

}  // namespace

OnnxModel onnx_model(const Graph& graph, std::span<const NamedTensor> weights, const std::vector<std::string>& outputs,
                     DType dtype) {
  OnnxTranslation translation(graph, weights, dtype);
  OnnxModel& model = translation.model;
  for (const TensorId input : graph.inputs) {
    const Tensor& tensor = graph.tensor(input);
    model.inputs.push_back({translation.unused(tensor.name), tensor.type});
    translation.set_value(input, Channels::last, model.inputs.back().name);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    model.outputs.push_back({translation.unused(outputs[i]), graph.tensor(graph.outputs[i]).type});
  }
  // Products of inputs with the kernels of recurrent ops. They are not translated, since ONNX's recurrent operators
  // compute them.
  std::set<TensorId> products;
  for (const Op& op : graph.ops) {
    if (op.get_if<Recurrent>() != nullptr) products.insert(op.inputs[0]);
  }
  for (const Op& op : graph.ops) {
    if (products.contains(op.outputs[0])) continue;
    const auto found = translations().find(op.def->kind());
    if (found == translations().end()) {
      throw Error(ErrorKind::config, op.location,
                  format("layer '{}' ({}) has no counterpart in ONNX", op.name, op.def->kind()));
    }
    found->second(OnnxOp(translation, op));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    model.nodes.push_back({"Identity", {translation.value(graph.outputs[i], Channels::last)}, {model.outputs[i].name}});
  }
  return std::move(model);
}

}  // namespace trainctl
