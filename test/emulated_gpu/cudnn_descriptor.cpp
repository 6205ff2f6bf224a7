// Implements the emulated cuDNN's backend descriptors: their attributes, their checks, and the engines.
//
// There are three engines: the first is deterministic and has no workspace; the second runs on tensor cores and has a
// knob and a workspace; the third, for gradients, is not deterministic (by its note). They add in different orders. If
// TRAINCTL_EMULATED_WRONG_ENGINE is set, a fourth one sets half of a kernel's gradient to zero (cudnn.cpp).
#include "test/emulated_gpu/cudnn_descriptor.h"

#include <cstdlib>

#include "test/emulated_gpu/cudnn_graph.h"

namespace emulated::cudnn {
namespace {

constexpr std::int64_t tensor_core_workspace = 4096;
constexpr cudnnBackendKnobType_t knob = CUDNN_KNOB_TYPE_SPLIT_K_SLC;

void require(bool holds, const char* why, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM) {
  if (!holds) throw Refusal{status, why};
}

// Checks that the descriptors that a descriptor refers to are finalized.
void check_children(const Descriptor& descriptor) {
  for (const auto& [name, all] : descriptor.children) {
    for (const auto& child : all) require(child->finalized, "a descriptor that it refers to is not finalized");
  }
}

void check_convolution(const Descriptor& d) {
  require(d.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT,
          "compute types other than float are not emulated");
  require(d.value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION,
          "flipped kernels are not emulated");
  const auto axes = d.value<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  require(axes == 2 || axes == 3, "only two and three dimensions are emulated");
  for (auto name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                    CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) {
    require(static_cast<std::int64_t>(d.values<std::int64_t>(name).size()) == axes,
            "there must be one value for each dimension");
  }
}

void check_pointwise(const Descriptor& op) {
  require(op.children.contains(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), "a pointwise operation must have a mode");
  const Tensor x(op.child(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)), y(op.child(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  require(x.sizes == y.sizes, "x and y must have the same dimensions");
  if (!op.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) return;
  const Tensor b(op.child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  for (std::size_t i = 0; i < b.sizes.size(); ++i)
    require(b.sizes[i] == 1 || b.sizes[i] == y.sizes[i], "b does not fit x");
}

const Descriptor& graph_of(const Descriptor& engine) { return engine.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH); }

bool is_gradient(const Descriptor& graph) {
  const auto type = graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)[0]->type;
  return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

bool offers_wrong_engine(const Descriptor& graph) {
  return std::getenv("TRAINCTL_EMULATED_WRONG_ENGINE") != nullptr &&
         graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)[0]->type ==
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

void check_engine(const Descriptor& engine) {
  const auto index = engine.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const Descriptor& graph = graph_of(engine);
  const int engines = offers_wrong_engine(graph) ? wrong_engine + 1 : is_gradient(graph) ? 3 : 2;
  require(index >= 0 && index < engines, "no such engine", CUDNN_STATUS_NOT_SUPPORTED);
}

std::shared_ptr<Descriptor> make(cudnnBackendDescriptorType_t type) {
  auto made = std::make_shared<Descriptor>();
  made->type = type;
  made->finalized = true;
  return made;
}

std::shared_ptr<Descriptor> configuration(const std::shared_ptr<const Descriptor>& graph, std::int64_t index,
                                          std::int64_t knob_value) {
  auto engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine->children[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {graph};
  engine->set<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, {index});
  describe_engine(*engine);
  auto made = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  made->children[CUDNN_ATTR_ENGINECFG_ENGINE] = {engine};
  auto& knobs = made->children[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES];
  if (index == 1) {
    auto choice = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice->set<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, {knob});
    choice->set<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, {knob_value});
    knobs.push_back(choice);
  }
  made->set<std::int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, {workspace_bytes(*made)});
  return made;
}

}  // namespace

std::int64_t workspace_bytes(const Descriptor& configuration) {
  const auto index =
      configuration.child(CUDNN_ATTR_ENGINECFG_ENGINE).value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  return index == 1 ? tensor_core_workspace : 0;
}

void describe_engine(Descriptor& engine) {
  std::vector<cudnnBackendNumericalNote_t> notes;
  switch (engine.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) {
    case 1:
      notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
      break;
    case 2:
      notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
      break;
    default:
      break;
  }
  engine.set(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes);
  engine.set<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, {});
}

std::vector<std::shared_ptr<Descriptor>> offered(const Descriptor& heuristics) {
  const auto& graph = heuristics.children.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)[0];
  const bool fallback =
      heuristics.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  std::vector<std::shared_ptr<Descriptor>> all;
  if (fallback) return {configuration(graph, 0, 0)};
  if (offers_wrong_engine(*graph)) all.push_back(configuration(graph, wrong_engine, 0));
  if (is_gradient(*graph)) all.push_back(configuration(graph, 2, 0));
  all.push_back(configuration(graph, 1, 3));
  all.push_back(configuration(graph, 1, 4));
  all.push_back(configuration(graph, 0, 0));
  return all;
}

void check(const Descriptor& d) {
  check_children(d);
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      static_cast<void>(Tensor(d));
      return;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return check_convolution(d);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      require(d.has(CUDNN_ATTR_POINTWISE_MODE) && d.has(CUDNN_ATTR_POINTWISE_MATH_PREC),
              "mode and precision are needed");
      return;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return Convolution(d).check();
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return check_pointwise(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return check_graph(d);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      require(d.children.contains(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) && d.has(CUDNN_ATTR_ENGINEHEUR_MODE),
              "heuristics need a graph and a mode");
      return;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return check_engine(d);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      d.child(CUDNN_ATTR_ENGINECFG_ENGINE);
      return;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      d.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      require(d.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) || d.has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP),
              "a plan needs a handle or a device");
      return;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      require(d.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() ==
                  d.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size(),
              "there must be an address for each tensor");
      return;
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
      require(d.has(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) && d.has(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE),
              "a choice needs a knob and its value");
      return;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return;
    default:
      throw Refusal{CUDNN_STATUS_NOT_SUPPORTED, "a descriptor that is not emulated"};
  }
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_POINTWISE_MODE:
      return CUDNN_TYPE_POINTWISE_MODE;
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
      return CUDNN_TYPE_DATA_TYPE;
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP:
    case CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP:
    case CUDNN_ATTR_POINTWISE_SWISH_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA:
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1:
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2:
      return CUDNN_TYPE_FLOAT;
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE:
      return CUDNN_TYPE_DOUBLE;
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
      return CUDNN_TYPE_CONVOLUTION_MODE;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return CUDNN_TYPE_HEUR_MODE;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return CUDNN_TYPE_KNOB_TYPE;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return CUDNN_TYPE_NUMERICAL_NOTE;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return CUDNN_TYPE_BEHAVIOR_NOTE;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      return CUDNN_TYPE_BOOLEAN;
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
    case CUDNN_ATTR_DEVICEPROP_HANDLE:
      return CUDNN_TYPE_HANDLE;
    case CUDNN_ATTR_DEVICEPROP_DEVICE_ID:
      return CUDNN_TYPE_INT32;
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
      return CUDNN_TYPE_CHAR;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return CUDNN_TYPE_VOID_PTR;
    case CUDNN_ATTR_CONVOLUTION_DILATIONS:
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES:
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS:
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
      return CUDNN_TYPE_INT64;
    default:
      return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  }
}

}  // namespace emulated::cudnn
