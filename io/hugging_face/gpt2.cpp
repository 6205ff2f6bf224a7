// GPT-2 (Radford et al., 2019): the preset gpt2.
//
// The projections are stored as (inputs, outputs), and those of queries, keys and values side by side in c_attn.
#include "core/graph/ops/attention.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "io/hugging_face/config_json.h"
#include "io/hugging_face/families.h"
#include "io/hugging_face/graph_view.h"
#include "io/hugging_face/values.h"

namespace trainctl {
namespace {

struct Gpt2 {
  std::int64_t vocabulary, positions, width, layers, heads, mlp;
};

std::vector<TensorRule> tensors_of(const Gpt2& size) {
  const std::int64_t width = size.width;
  std::vector<TensorRule> rules{
      {"transformer.wte.weight", {size.vocabulary, width}, StoredLayout::same, {"wte/embeddings"}},
      {"transformer.wpe.weight", {size.positions, width}, StoredLayout::same, {"wpe/embeddings"}}};
  for (std::int64_t n = 0; n < size.layers; ++n) {
    const std::string from = format("transformer.h.{}.", n), attention = format("h/{}/attention/", n),
                      mlp = format("h/{}/mlp/", n), projection = attention + "attn/";
    const auto dense = [&](const std::string& stored, std::int64_t inputs, std::int64_t outputs,
                           std::vector<std::string> layers) {
      std::vector<std::string> kernels, biases;
      for (const std::string& layer : layers) {
        kernels.push_back(layer + "/kernel");
        biases.push_back(layer + "/bias");
      }
      rules.push_back({from + stored + ".weight", {inputs, outputs}, StoredLayout::same, std::move(kernels)});
      rules.push_back({from + stored + ".bias", {outputs}, StoredLayout::same, std::move(biases)});
    };
    add_norm(from + "ln_1", width, attention + "ln_1", rules);
    dense("attn.c_attn", width, 3 * width, {projection + "query", projection + "key", projection + "value"});
    dense("attn.c_proj", width, width, {projection + "attention_output"});
    add_norm(from + "ln_2", width, mlp + "ln_2", rules);
    dense("mlp.c_fc", width, size.mlp, {mlp + "c_fc"});
    dense("mlp.c_proj", size.mlp, width, {mlp + "c_proj"});
  }
  add_norm("transformer.ln_f", width, "ln_f", rules);
  return rules;
}

HuggingFaceNetwork read_gpt2(const std::string&, ConfigJson& config) {
  const Gpt2 size{.vocabulary = config.count("vocab_size", 50257),
                  .positions = config.count("n_positions", 1024),
                  .width = config.count("n_embd", 768),
                  .layers = config.count("n_layer", 12, max_hugging_face_layers),
                  .heads = config.count("n_head", 12),
                  .mlp = config.count_or_null("n_inner", 4 * config.count("n_embd", 768))};
  if (size.width % size.heads != 0) {
    config.error(format("'n_head' {} does not divide 'n_embd' {}", size.heads, size.width));
  }
  config.only("activation_function", {"gelu_new", "gelu_pytorch_tanh"}, "gpt2");
  config.only("scale_attn_weights", {true}, "gpt2");
  config.only("scale_attn_by_inverse_layer_idx", {false}, "gpt2");
  config.only("add_cross_attention", {false}, "gpt2");
  config.only("tie_word_embeddings", {true}, "gpt2");
  config.ignore({"n_ctx", "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation",
                 "summary_proj_to_labels", "summary_first_dropout"});
  Node with = map_node();
  append(with, "vocabulary", number_node(size.vocabulary));
  append(with, "positions", number_node(size.positions));
  append(with, "layers", number_node(size.layers));
  append(with, "heads", number_node(size.heads));
  append(with, "head_size", number_node(size.width / size.heads));
  append(with, "width", number_node(size.width));
  append(with, "mlp", number_node(size.mlp));
  append(with, "dropout",
         number_node(read_dropout("gpt2", "resid_pdrop", {{"embd_pdrop", 0.1}, {"attn_pdrop", 0.1}}, config)));
  append(with, "epsilon", number_node(config.positive("layer_norm_epsilon", 1e-5)));
  return {.model_type = {},
          .preset = "gpt2",
          .with = std::move(with),
          .sample = {size.positions},
          .tensors = tensors_of(size),
          .prefix = "transformer.",
          .buffers = {"*h.*.attn.bias", "*h.*.attn.masked_bias"},
          .copy = {{"lm_head.weight", "transformer.wte.weight"}}};
}

std::optional<Json> describe_gpt2(const Graph& graph) {
  const GraphView view(graph);
  const Shape *table = view.shape("wte/embeddings"), *positions = view.shape("wpe/embeddings"),
              *mlp = view.shape("h/0/mlp/c_fc/kernel");
  const auto* norm = view.op<LayerNorm>("ln_f/gamma");
  const auto* attention = view.op<Attention>();
  if (table == nullptr || positions == nullptr || mlp == nullptr || norm == nullptr || attention == nullptr) return {};
  const double rate = view.dropout_rate();
  return Json{{"model_type", "gpt2"},
              {"architectures", {"GPT2LMHeadModel"}},
              {"vocab_size", (*table)[0]},
              {"n_positions", (*positions)[0]},
              {"n_embd", (*table)[1]},
              {"n_layer", view.blocks("h/", "/attention/ln_1/gamma")},
              {"n_head", (*table)[1] / attention->a.head_size},
              {"n_inner", mlp->back()},
              {"activation_function", "gelu_new"},
              {"layer_norm_epsilon", short_double(norm->a.epsilon)},
              {"resid_pdrop", rate},
              {"embd_pdrop", rate},
              {"attn_pdrop", rate},
              {"tie_word_embeddings", true}};
}

}  // namespace

HuggingFaceFamily gpt2_family() { return {{"gpt2"}, read_gpt2, describe_gpt2}; }

}  // namespace trainctl
