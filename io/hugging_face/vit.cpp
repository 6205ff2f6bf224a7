// Vision transformers (Dosovitskiy et al., 2021) that classify images, and DeiT (Touvron et al., 2021) without the
// token of distillation: the preset vit_b16.
//
// The kernels are stored as (outputs, inputs, ...), the class token and the positions with a first dimension of 1.
#include "core/graph/ops/attention.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "io/hugging_face/config_json.h"
#include "io/hugging_face/families.h"
#include "io/hugging_face/graph_view.h"
#include "io/hugging_face/values.h"

namespace trainctl {
namespace {

struct Vit {
  std::int64_t classes, image, channels, patch, width, layers, heads, mlp;

  std::int64_t positions() const { return (image / patch) * (image / patch) + 1; }
};

std::vector<TensorRule> tensors_of(const Vit& size) {
  const std::int64_t width = size.width;
  std::vector<TensorRule> rules;
  const auto dense = [&](const std::string& stored, std::int64_t outputs, std::int64_t inputs,
                         const std::string& layer) { add_dense(stored, outputs, inputs, layer, rules); };
  const auto norm = [&](const std::string& stored, const std::string& layer) { add_norm(stored, width, layer, rules); };
  const std::string embeddings = "vit.embeddings.", projection = embeddings + "patch_embeddings.projection";
  rules.push_back({embeddings + "cls_token", {1, 1, width}, StoredLayout::batched, {"class_token/token"}});
  rules.push_back({embeddings + "position_embeddings",
                   {1, size.positions(), width},
                   StoredLayout::batched,
                   {"position_embedding/embeddings"}});
  rules.push_back({projection + ".weight",
                   {width, size.channels, size.patch, size.patch},
                   StoredLayout::convolution,
                   {"patch_embedding/kernel"}});
  add_vector(projection + ".bias", width, "patch_embedding/bias", rules);
  for (std::int64_t n = 0; n < size.layers; ++n) {
    const std::string from = format("vit.encoder.layer.{}.", n), attention = format("encoder/{}/attention/", n),
                      mlp = format("encoder/{}/mlp/", n);
    norm(from + "layernorm_before", attention + "ln_1");
    for (const char* name : {"query", "key", "value"}) {
      dense(from + "attention.attention." + name, width, width, attention + "attn/" + name);
    }
    dense(from + "attention.output.dense", width, width, attention + "attn/attention_output");
    norm(from + "layernorm_after", mlp + "ln_2");
    dense(from + "intermediate.dense", size.mlp, width, mlp + "fc1");
    dense(from + "output.dense", width, size.mlp, mlp + "fc2");
  }
  norm("vit.layernorm", "ln");
  dense("classifier", size.classes, width, "predictions");
  return rules;
}

HuggingFaceNetwork read_vit(const std::string&, ConfigJson& config) {
  const Vit size{.classes = read_classes(config),
                 .image = config.count("image_size", 224),
                 .channels = config.count("num_channels", 3),
                 .patch = config.count("patch_size", 16),
                 .width = config.count("hidden_size", 768),
                 .layers = config.count("num_hidden_layers", 12, max_hugging_face_layers),
                 .heads = config.count("num_attention_heads", 12),
                 .mlp = config.count("intermediate_size", 3072)};
  if (size.width % size.heads != 0) {
    config.error(format("'num_attention_heads' {} does not divide 'hidden_size' {}", size.heads, size.width));
  }
  if (size.image % size.patch != 0) {
    config.error(format("'patch_size' {} does not divide 'image_size' {}", size.patch, size.image));
  }
  config.only("hidden_act", {"gelu"}, "vit_b16");
  config.only("qkv_bias", {true}, "vit_b16");
  config.ignore({"encoder_stride", "pooler_act", "pooler_output_size"});
  Node with = map_node();
  append(with, "classes", number_node(size.classes));
  append(with, "patch", number_node(size.patch));
  append(with, "layers", number_node(size.layers));
  append(with, "heads", number_node(size.heads));
  append(with, "head_size", number_node(size.width / size.heads));
  append(with, "width", number_node(size.width));
  append(with, "mlp", number_node(size.mlp));
  append(with, "epsilon", number_node(config.positive("layer_norm_eps", 1e-12)));
  // As in transformers, after the embeddings, after attention and at the end of a block's dense network only.
  append(with, "dropout", number_node(config.rate("hidden_dropout_prob", 0)));
  append(with, "mlp_dropout", number_node(0.0));
  append(with, "attention_dropout", number_node(config.rate("attention_probs_dropout_prob", 0)));
  return {.model_type = {},
          .preset = "vit_b16",
          .with = std::move(with),
          .sample = {size.image, size.image, size.channels},
          .tensors = tensors_of(size),
          .prefix = "vit."};
}

std::optional<Json> describe_vit(const Graph& graph) {
  const GraphView view(graph);
  const Shape *patch = view.shape("patch_embedding/kernel"), *mlp = view.shape("encoder/0/mlp/fc1/kernel"),
              *classes = view.shape("predictions/kernel");
  const auto* norm = view.op<LayerNorm>("ln/gamma");
  const auto* attention = view.op<Attention>();
  if (patch == nullptr || mlp == nullptr || classes == nullptr || norm == nullptr || attention == nullptr) return {};
  const Shape& image = graph.tensor(graph.inputs[0]).type.shape;
  if (patch->rank() != 4 || image.rank() != 4 || image[1] != image[2]) return {};
  Json config{{"model_type", "vit"},
              {"architectures", {"ViTForImageClassification"}},
              {"image_size", image[1]},
              {"num_channels", image[3]},
              {"patch_size", (*patch)[0]},
              {"hidden_size", patch->back()},
              {"num_hidden_layers", view.blocks("encoder/", "/attention/ln_1/gamma")},
              {"num_attention_heads", patch->back() / attention->a.head_size},
              {"intermediate_size", mlp->back()},
              {"hidden_act", "gelu"},
              {"layer_norm_eps", short_double(norm->a.epsilon)},
              {"hidden_dropout_prob", view.dropout_rate()},
              {"attention_probs_dropout_prob", short_double(attention->a.dropout.rate)},
              {"qkv_bias", true}};
  add_classes(classes->back(), config);
  return config;
}

}  // namespace

HuggingFaceFamily vit_family() { return {{"vit"}, read_vit, describe_vit}; }

}  // namespace trainctl
