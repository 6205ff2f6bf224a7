// Decoders with rotary positions and RMS normalization: Llama 2 and 3, SmolLM2 (model_type llama), Mistral, and Qwen 3.
// All of them are the preset llama.
//
// The projections are stored as (outputs, inputs). Rotary positions turn value i of a head with value i + half of the
// head's size, as here by default.
#include <algorithm>

#include "core/graph/ops/attention.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/graph/ops/rotary.h"
#include "io/hugging_face/config_json.h"
#include "io/hugging_face/families.h"
#include "io/hugging_face/graph_view.h"
#include "io/hugging_face/values.h"

namespace trainctl {
namespace {

struct Llama {
  std::int64_t vocabulary, layers, width, heads, key_heads, head_size, mlp;
  bool query_key_norm, tied;
};

std::vector<TensorRule> tensors_of(const Llama& size) {
  const std::int64_t width = size.width, queries = size.heads * size.head_size, keys = size.key_heads * size.head_size;
  std::vector<TensorRule> rules{
      {"model.embed_tokens.weight", {size.vocabulary, width}, StoredLayout::same, {"embed_tokens/embeddings"}}};
  for (std::int64_t n = 0; n < size.layers; ++n) {
    const std::string from = format("model.layers.{}.", n), attention = format("layers/{}/attention/", n),
                      mlp = format("layers/{}/mlp/", n);
    const auto kernel = [&](const std::string& stored, std::int64_t outputs, std::int64_t inputs,
                            const std::string& layer) {
      rules.push_back({from + stored + ".weight", {outputs, inputs}, StoredLayout::transposed, {layer + "/kernel"}});
    };
    const auto scale = [&](const std::string& stored, std::int64_t values, const std::string& parameter) {
      rules.push_back({from + stored + ".weight", {values}, StoredLayout::same, {parameter}});
    };
    scale("input_layernorm", width, attention + "input_layernorm/scale");
    kernel("self_attn.q_proj", queries, width, attention + "self_attn/query");
    kernel("self_attn.k_proj", keys, width, attention + "self_attn/key");
    kernel("self_attn.v_proj", keys, width, attention + "self_attn/value");
    kernel("self_attn.o_proj", width, queries, attention + "self_attn/attention_output");
    if (size.query_key_norm) {
      scale("self_attn.q_norm", size.head_size, attention + "self_attn/query_norm/scale");
      scale("self_attn.k_norm", size.head_size, attention + "self_attn/key_norm/scale");
    }
    scale("post_attention_layernorm", width, mlp + "post_attention_layernorm/scale");
    kernel("mlp.gate_proj", size.mlp, width, mlp + "gate_proj");
    kernel("mlp.up_proj", size.mlp, width, mlp + "up_proj");
    kernel("mlp.down_proj", width, size.mlp, mlp + "down_proj");
  }
  rules.push_back({"model.norm.weight", {width}, StoredLayout::same, {"norm/scale"}});
  if (!size.tied) {
    rules.push_back(
        {"lm_head.weight", {size.vocabulary, width}, StoredLayout::transposed, {"embed_tokens/reverse_embeddings"}});
  }
  return rules;
}

void append_scaling(Node& rotary, ConfigJson& scaling) {
  const std::string type = scaling.text("rope_type", scaling.text("type", "default"));
  scaling.ignore({"type"});
  scaling.only("partial_rotary_factor", {1.0}, "llama");
  const bool llama3 = type == "llama3";
  if (type != "default" && type != "linear" && !llama3) {
    scaling.error(
        format("the rotary positions are scaled by the rule '{}', which the preset llama does not have; it has "
               "default, linear and llama3",
               type.substr(0, 60)));
    return scaling.ignore({"factor", "original_max_position_embeddings"});
  }
  if (type == "default") return scaling.ignore({"factor"});
  append(rotary, "scaling", scalar_node(type));
  append(rotary, "scaling_factor", number_node(scaling.positive("factor", 1)));
  if (!llama3) return;
  append(rotary, "low_freq_factor", number_node(scaling.positive("low_freq_factor", 1)));
  append(rotary, "high_freq_factor", number_node(scaling.positive("high_freq_factor", 4)));
  append(rotary, "original_max_position_embeddings", number_node(scaling.count("original_max_position_embeddings")));
}

// Version 5 of transformers writes `rope_parameters`, earlier versions `rope_theta` and `rope_scaling`.
Node rotary_of(ConfigJson& config) {
  std::optional<ConfigJson> parameters = config.object("rope_parameters"), scaling = config.object("rope_scaling");
  if (parameters && scaling) config.error("has both 'rope_parameters' and 'rope_scaling'; remove one of them");
  const double theta =
      parameters && config.find("rope_theta") == nullptr ? 10'000 : config.positive("rope_theta", 10'000);
  Node rotary = map_node();
  append(rotary, "max_wavelength", number_node(parameters ? parameters->positive("rope_theta", theta) : theta));
  for (std::optional<ConfigJson>* given : {&parameters, &scaling}) {
    if (!*given) continue;
    append_scaling(rotary, **given);
    (*given)->refuse_others();
    break;
  }
  return rotary;
}

// The width of the window of attention, the same in all layers; 0: no window.
std::int64_t window_of(const std::string& model_type, std::int64_t layers, ConfigJson& config) {
  std::int64_t window = 0;
  if (model_type == "mistral") {
    const bool none = config.has("sliding_window") && config.find("sliding_window") == nullptr;
    if (!none) window = config.count("sliding_window", 4096);
  } else if (model_type == "qwen3") {
    if (config.flag("use_sliding_window", false)) window = config.count_or_null("sliding_window", 4096);
    config.ignore({"sliding_window"});
    const Json* first = config.find("max_window_layers");
    const bool all = first != nullptr && *first == 0;
    const bool none = first != nullptr && first->is_number_integer() && *first >= layers;
    if (window > 0 && !config.has("layer_types")) {
      if (none) return 0;
      if (!all)
        config.error("'max_window_layers' gives a window to some layers only; the preset llama has one for all");
    }
  }
  const Json* types = config.find("layer_types");
  if (types == nullptr) return window;
  const auto all = [&](const char* type) {
    return types->is_array() && static_cast<std::int64_t>(types->size()) == layers &&
           std::all_of(types->begin(), types->end(), [&](const Json& one) { return one == type; });
  };
  if (all("full_attention") && (window == 0 || model_type == "qwen3")) return 0;
  if (!all("sliding_attention") || window == 0) {
    config.error(
        "'layer_types' does not have the same kind of attention for every layer, or contradicts 'sliding_window'; in "
        "the "
        "preset llama all layers have full_attention, or all have sliding_attention");
  }
  return window;
}

HuggingFaceNetwork read_llama(const std::string& model_type, ConfigJson& config) {
  const bool qwen = model_type == "qwen3";
  const std::int64_t width = config.count("hidden_size"), heads = config.count("num_attention_heads");
  const Llama size{.vocabulary = config.count("vocab_size"),
                   .layers = config.count("num_hidden_layers", {}, max_hugging_face_layers),
                   .width = width,
                   .heads = heads,
                   .key_heads = config.count_or_null("num_key_value_heads", heads),
                   .head_size = config.count_or_null("head_dim", qwen ? 128 : std::max<std::int64_t>(1, width / heads)),
                   .mlp = config.count("intermediate_size"),
                   .query_key_norm = qwen,
                   .tied = config.flag("tie_word_embeddings", false)};
  if (size.heads % size.key_heads != 0) {
    config.error(
        format("'num_key_value_heads' {} does not divide 'num_attention_heads' {}", size.key_heads, size.heads));
  }
  const double epsilon = config.positive("rms_norm_eps", 1e-6);
  const std::int64_t positions = config.count("max_position_embeddings", 2048);
  config.only("hidden_act", {"silu"}, "llama");
  config.only("attention_bias", {false}, "llama");
  config.only("mlp_bias", {false}, "llama");
  config.only("partial_rotary_factor", {1.0}, "llama");
  config.ignore({"pretraining_tp"});
  Node with = map_node();
  append(with, "vocabulary", number_node(size.vocabulary));
  append(with, "layers", number_node(size.layers));
  append(with, "width", number_node(size.width));
  append(with, "heads", number_node(size.heads));
  append(with, "key_heads", number_node(size.key_heads));
  append(with, "head_size", number_node(size.head_size));
  append(with, "mlp", number_node(size.mlp));
  append(with, "epsilon", number_node(epsilon));
  append(with, "rotary", rotary_of(config));
  if (qwen) append(with, "query_key_norm", number_node(epsilon));
  append(with, "window", number_node(window_of(model_type, size.layers, config)));
  append(with, "dropout", number_node(config.rate("attention_dropout", 0)));
  append(with, "tied", scalar_node(size.tied ? "true" : "false"));
  HuggingFaceNetwork network{.model_type = {},
                             .preset = "llama",
                             .with = std::move(with),
                             .sample = {positions},
                             .tensors = tensors_of(size),
                             .prefix = "model.",
                             .buffers = {"*rotary_emb.inv_freq"}};
  if (size.tied) network.copy = {"lm_head.weight", "model.embed_tokens.weight"};
  return network;
}

Json scaling_of(const RotaryAttributes& rotary) {
  if (rotary.scaling == RotaryScaling::none) return nullptr;
  if (rotary.scaling == RotaryScaling::linear) return {{"rope_type", "linear"}, {"factor", rotary.factor}};
  return {{"rope_type", "llama3"},
          {"factor", rotary.factor},
          {"low_freq_factor", rotary.low_frequency_factor},
          {"high_freq_factor", rotary.high_frequency_factor},
          {"original_max_position_embeddings", rotary.original_positions}};
}

std::optional<Json> describe_llama(const Graph& graph) {
  const GraphView view(graph);
  const std::string first = "layers/0/attention/self_attn/";
  const Shape *table = view.shape("embed_tokens/embeddings"), *mlp = view.shape("layers/0/mlp/up_proj/kernel"),
              *queries = view.shape(first + "query/kernel"), *keys = view.shape(first + "key/kernel");
  const auto* norm = view.op<LayerNorm>("norm/scale");
  const auto* attention = view.op<Attention>();
  const auto* rotary = view.op<Rotary>();
  if (table == nullptr || mlp == nullptr || queries == nullptr || keys == nullptr || norm == nullptr ||
      attention == nullptr || rotary == nullptr) {
    return {};
  }
  const std::int64_t head_size = attention->a.head_size, window = attention->a.window,
                     layers = view.blocks("layers/", "/attention/input_layernorm/scale");
  const bool qwen = view.shape(first + "query_norm/scale") != nullptr;
  Json config{{"model_type", qwen         ? "qwen3"
                             : window > 0 ? "mistral"
                                          : "llama"},
              {"architectures",
               {qwen         ? "Qwen3ForCausalLM"
                : window > 0 ? "MistralForCausalLM"
                             : "LlamaForCausalLM"}},
              {"vocab_size", (*table)[0]},
              {"hidden_size", (*table)[1]},
              {"intermediate_size", mlp->back()},
              {"num_hidden_layers", layers},
              {"num_attention_heads", queries->back() / head_size},
              {"num_key_value_heads", keys->back() / head_size},
              {"head_dim", head_size},
              {"hidden_act", "silu"},
              {"max_position_embeddings", graph.tensor(graph.inputs[0]).type.shape.back()},
              {"rms_norm_eps", short_double(norm->a.epsilon)},
              {"rope_theta", rotary->a.base},
              {"rope_scaling", scaling_of(rotary->a)},
              {"attention_bias", false},
              {"attention_dropout", short_double(attention->a.dropout.rate)},
              {"tie_word_embeddings", view.shape("embed_tokens/reverse_embeddings") == nullptr}};
  if (window > 0) config["sliding_window"] = window;
  if (qwen && window > 0) {
    config["use_sliding_window"] = true;
    config["max_window_layers"] = 0;
  }
  return config;
}

}  // namespace

HuggingFaceFamily llama_family() { return {{"llama", "mistral", "qwen3"}, read_llama, describe_llama}; }

}  // namespace trainctl
