// reversible_embedding: maps tokens to rows of the parameter embeddings (input_dim, output_dim); used again with
// `reverse: true`, it maps vectors back to one value for each token.
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/embedding.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/masks.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct ReversibleEmbeddingOptions final : ChainedLayer {
  std::int64_t input_dim = 0;
  std::int64_t output_dim = 0;
  bool tie_weights = true;
  InitializerChoice embeddings_initializer{"uniform"};
  RegularizerChoice embeddings_regularizer;
  double logit_soft_cap = 0;
  bool mask_zero = false;
  bool reverse = false;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (reverse) {
      const auto* first = dynamic_cast<const ReversibleEmbeddingOptions*>(&layer.first_use());
      if (first == nullptr || first->reverse) {
        return layer.error("reverse: no layer before it has this name; give both uses of the layer the same name",
                           inputs[0]);
      }
      return first->logits(layer, inputs[0]);
    }
    if (!holds_tokens(layer, inputs[0])) return {};
    const auto lookup = std::make_shared<Embedding>(layer.compute());
    const TensorId rows = layer.op(lookup, {inputs[0].tensor, table(layer)})[0];
    return layer.output(rows, mask_zero ? mask_of_tokens(layer, inputs[0]) : no_tensor);
  }
  std::int64_t tokens() const override { return reverse ? 0 : input_dim; }
  MaskUse mask_use() const override { return reverse ? MaskUse::keeps : MaskUse::own; }
  bool takes_options_of_first_use() const override { return reverse; }

 private:
  TensorId table(Layer& layer) const {
    const Shape shape{input_dim, output_dim};
    return layer.parameter("embeddings", shape, make_initializer(embeddings_initializer, shape), true,
                           penalty_of(embeddings_regularizer));
  }

  // One value for each token: the product of a vector and the token's row of the table or, without tied weights, of the
  // token's column of a kernel.
  Feature logits(Layer& layer, const Feature& input) const {
    if (layer.shape(input).back() != output_dim) {
      return layer.error(format("reverse: the input has {} in its last dimension, but output_dim is {}",
                                counted(layer.shape(input).back(), "value"), grouped(output_dim)),
                         input);
    }
    TensorId y = no_tensor;
    if (tie_weights) {
      y = layer.op(std::make_shared<DenseGradInput>(), {input.tensor, table(layer)})[0];
    } else {
      const Shape shape{output_dim, input_dim};
      const TensorId kernel =
          layer.parameter("reverse_embeddings", shape, make_initializer(embeddings_initializer, shape), true,
                          penalty_of(embeddings_regularizer));
      y = layer.op(std::make_shared<Dense>(), {input.tensor, kernel})[0];
    }
    return layer.output(logit_soft_cap > 0 ? capped(layer, y) : y);
  }

  // cap * tanh(y / cap).
  TensorId capped(Layer& layer, TensorId y) const {
    const auto cap = static_cast<float>(logit_soft_cap);
    const TensorId share = layer.op(std::make_shared<ScaleBy>(1 / cap), {y})[0];
    const TensorId bounded =
        layer.op(std::make_shared<Activation>(ActivationFunction{ActivationKind::tanh}), {share})[0];
    return layer.op(std::make_shared<ScaleBy>(cap), {bounded})[0];
  }
};

// Reports options of a reverse use that only the first use has; equal to their defaults, they say nothing.
void check_reverse_use(const ReversibleEmbeddingOptions& options, const Node& node, Reader& reader) {
  const Section& section = *layer_choices().find("reversible_embedding");
  const ReversibleEmbeddingOptions defaults;
  const Node default_values = section.write(&defaults);
  for (const Node::Entry& entry : section.write(&options).entries) {
    if (entry.key == "name" || entry.key == "from" || entry.key == "reverse") continue;
    const Node* unchanged = default_values.find(entry.key);
    if (unchanged != nullptr && flow_text(*unchanged) == flow_text(entry.value)) continue;
    reader.error(node.find(entry.key)->location,
                 format("with reverse, the layer has the options of its first use: leave out {}", entry.key));
  }
  if (options.name.is_auto()) {
    reader.error(node.location, "with reverse, `name` must be the name of the first use of the layer");
  }
}

void check_use(const ReversibleEmbeddingOptions& options, const Node& node, Reader& reader) {
  if (options.reverse) return check_reverse_use(options, node, reader);
  for (const auto& [key, value] : {std::pair{"input_dim", options.input_dim}, {"output_dim", options.output_dim}}) {
    if (value == 0) {
      reader.error(node.location, format("reversible_embedding needs '{}' in its first use", key));
    }
  }
}

}  // namespace

Section reversible_embedding() {
  using O = ReversibleEmbeddingOptions;
  return layer_keys<O>("reversible_embedding",
                       "Replaces each token by a vector, like embedding. A second use {name: NAME, reverse: true} of "
                       "the layer maps vectors to one value for each token, by the product with the transposed table: "
                       "the logits of a language model with tied weights.")
      .key("input_dim", &O::input_dim, "Size of the vocabulary: all tokens are below it; required for the first use.",
           between(0, max_channels))
      .key("output_dim", &O::output_dim, "Length of the vectors; required for the first use.", between(0, max_channels))
      .key("tie_weights", &O::tie_weights,
           "Whether the reverse use has the same table; otherwise it has a parameter of its own, reverse_embeddings "
           "(output_dim, input_dim).")
      .key("embeddings_initializer", &O::embeddings_initializer, "Initial values of the vectors.")
      .key("embeddings_regularizer", &O::embeddings_regularizer, "A penalty on the vectors.")
      .key("logit_soft_cap", &O::logit_soft_cap,
           "Bound of the values of the reverse use, by cap * tanh(value / cap), as in Gemma 2; 0: no bound.",
           at_least(0))
      .key("mask_zero", &O::mask_zero, mask_zero_meaning)
      .key("reverse", &O::reverse,
           "Whether this use maps vectors to values of tokens. It states only name, from and reverse; it has the other "
           "options of the first use.")
      .check(check_use);
}

}  // namespace trainctl
