// BERT (Devlin et al., 2019) and networks of its layers such as MiniLM: the preset bert, whole for classifiers of
// texts, and up to the pooler or the encoder for others.
//
// The kernels are stored as (outputs, inputs).
#include "core/graph/ops/attention.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "io/hugging_face/config_json.h"
#include "io/hugging_face/families.h"
#include "io/hugging_face/graph_view.h"
#include "io/hugging_face/values.h"

namespace trainctl {
namespace {

struct Bert {
  std::int64_t classes, vocabulary, positions, segments, width, layers, heads, mlp;
};

std::vector<TensorRule> tensors_of(const Bert& size) {
  const std::int64_t width = size.width;
  std::vector<TensorRule> rules;
  const auto dense = [&](const std::string& stored, std::int64_t outputs, std::int64_t inputs,
                         const std::string& layer) { add_dense(stored, outputs, inputs, layer, rules); };
  const auto norm = [&](const std::string& stored, const std::string& layer) {
    add_norm(stored + ".LayerNorm", width, layer, rules);
  };
  const auto table = [&](const std::string& name, std::int64_t rows) {
    rules.push_back({"bert.embeddings." + name + ".weight", {rows, width}, StoredLayout::same, {name + "/embeddings"}});
  };
  table("word_embeddings", size.vocabulary);
  table("position_embeddings", size.positions);
  table("token_type_embeddings", size.segments);
  norm("bert.embeddings", "embeddings_norm");
  for (std::int64_t n = 0; n < size.layers; ++n) {
    const std::string from = format("bert.encoder.layer.{}.", n), block = format("encoder/{}/", n);
    for (const char* name : {"query", "key", "value"}) {
      dense(from + "attention.self." + name, width, width, block + "attention/self/" + name);
    }
    dense(from + "attention.output.dense", width, width, block + "attention/self/attention_output");
    norm(from + "attention.output", block + "attention_norm");
    dense(from + "intermediate.dense", size.mlp, width, block + "mlp/intermediate");
    dense(from + "output.dense", width, size.mlp, block + "mlp/output");
    norm(from + "output", block + "output_norm");
  }
  return rules;
}

// Adds the tensors after the encoder.
void add_heads(const Bert& size, std::vector<TensorRule>& rules) {
  add_dense("bert.pooler.dense", size.width, size.width, "pooler", rules);
  add_dense("classifier", size.classes, size.width, "predictions", rules);
}

// The last layer of the preset that the network has; empty: all of them. Adds patterns of tensors after it.
std::string end_of(ConfigJson& config, std::vector<std::string>& other_heads) {
  const Json* names = config.find("architectures");
  const std::string name = names != nullptr && names->is_array() && names->size() == 1 && (*names)[0].is_string()
                               ? (*names)[0]
                               : "BertModel";
  if (name == "BertForSequenceClassification") return "";
  if (name == "BertForMaskedLM") {
    other_heads = {"cls.*", "*pooler.*"};
    return "encoder";
  }
  if (name == "BertForPreTraining") {
    other_heads = {"cls.*"};
  } else if (name != "BertModel") {
    config.error(
        format("'architectures' is {}, whose head the preset bert does not have; it reads BertModel, "
               "BertForSequenceClassification, BertForMaskedLM and BertForPreTraining",
               name.substr(0, 60)));
  }
  return "pooler";
}

HuggingFaceNetwork read_bert(const std::string&, ConfigJson& config) {
  const Bert size{.classes = read_classes(config),
                  .vocabulary = config.count("vocab_size", 30522),
                  .positions = config.count("max_position_embeddings", 512),
                  .segments = config.count("type_vocab_size", 2),
                  .width = config.count("hidden_size", 768),
                  .layers = config.count("num_hidden_layers", 12, max_hugging_face_layers),
                  .heads = config.count("num_attention_heads", 12),
                  .mlp = config.count("intermediate_size", 3072)};
  if (size.width % size.heads != 0) {
    config.error(format("'num_attention_heads' {} does not divide 'hidden_size' {}", size.heads, size.width));
  }
  config.only("type_vocab_size", {2}, "bert");
  config.only("hidden_act", {"gelu"}, "bert");
  config.only("position_embedding_type", {"absolute"}, "bert");
  config.only("is_decoder", {false}, "bert");
  config.only("add_cross_attention", {false}, "bert");
  config.only("problem_type", {"single_label_classification", nullptr}, "bert");
  config.only("pad_token_id", {0, nullptr}, "bert");
  config.only("pruned_heads", {Json::object()}, "bert");
  config.ignore({"gradient_checkpointing", "tie_word_embeddings"});
  HuggingFaceNetwork network{.model_type = {},
                             .preset = "bert",
                             .with = map_node(),
                             .sample = {size.positions},
                             .tensors = tensors_of(size),
                             .prefix = "bert."};
  add_heads(size, network.tensors);
  network.until = end_of(config, network.other_heads);
  network.older_names = {{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}};
  Node& with = network.with;
  if (network.until.empty()) {
    append(with, "classes", number_node(size.classes));
    if (size.classes == 1) config.error("it has one class, but a classifier of the preset bert needs two at least");
  }
  append(with, "vocabulary", number_node(size.vocabulary));
  append(with, "positions", number_node(size.positions));
  append(with, "layers", number_node(size.layers));
  append(with, "heads", number_node(size.heads));
  append(with, "head_size", number_node(size.width / size.heads));
  append(with, "width", number_node(size.width));
  append(with, "mlp", number_node(size.mlp));
  append(with, "dropout",
         number_node(read_dropout("bert", "hidden_dropout_prob",
                                  {{"attention_probs_dropout_prob", 0.1}, {"classifier_dropout", {}}}, config)));
  append(with, "epsilon", number_node(config.positive("layer_norm_eps", 1e-12)));
  return network;
}

std::optional<Json> describe_bert(const Graph& graph) {
  const GraphView view(graph);
  const Shape *table = view.shape("word_embeddings/embeddings"),
              *positions = view.shape("position_embeddings/embeddings"),
              *segments = view.shape("token_type_embeddings/embeddings"),
              *mlp = view.shape("encoder/0/mlp/intermediate/kernel"), *classes = view.shape("predictions/kernel");
  const auto* norm = view.op<LayerNorm>("embeddings_norm/gamma");
  const auto* attention = view.op<Attention>();
  if (table == nullptr || positions == nullptr || segments == nullptr || mlp == nullptr || norm == nullptr ||
      attention == nullptr) {
    return {};
  }
  const double rate = view.dropout_rate();
  Json config{{"model_type", "bert"},
              {"architectures", {classes == nullptr ? "BertModel" : "BertForSequenceClassification"}},
              {"vocab_size", (*table)[0]},
              {"max_position_embeddings", (*positions)[0]},
              {"type_vocab_size", (*segments)[0]},
              {"hidden_size", (*table)[1]},
              {"num_hidden_layers", view.blocks("encoder/", "/attention_norm/gamma")},
              {"num_attention_heads", (*table)[1] / attention->a.head_size},
              {"intermediate_size", mlp->back()},
              {"hidden_act", "gelu"},
              {"layer_norm_eps", short_double(norm->a.epsilon)},
              {"hidden_dropout_prob", rate},
              {"attention_probs_dropout_prob", rate},
              {"pad_token_id", 0}};
  if (classes != nullptr) add_classes(classes->back(), config);
  return config;
}

}  // namespace

HuggingFaceFamily bert_family() { return {{"bert"}, read_bert, describe_bert}; }

}  // namespace trainctl
