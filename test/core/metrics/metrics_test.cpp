// Tests how losses and metrics are matched with a network and its targets, and means over an epoch.
#include "core/metrics/metric.h"
#include "core/metrics/targets.h"

#include <cmath>
#include <random>
#include <set>

#include "core/graph/ops/metrics/metrics.h"
#include "core/metrics/means.h"
#include "core/metrics/output.h"
#include "core/spec/values.h"
#include "test/catch.h"

namespace trainctl::metrics_test {
namespace {

Choice loss(const char* name, const char* key = nullptr, const char* value = nullptr) {
  Node node = map_node();
  append(node, "name", scalar_node(name));
  if (key) append(node, key, scalar_node(value));
  Reader reader;
  Choice choice;
  REQUIRE(read_choice(loss_choices(), node, reader, choice));
  return choice;
}

Choice metric(const char* name) { return default_choice(metric_choices(), name); }

bool accuracy_is_of_answers(const char* name, Shape output) {
  Reader reader;
  const ResolvedLoss resolved = resolve_loss(loss(name), FinalActivation::none, reader);
  const auto metrics = resolve_metrics({metric("accuracy")}, resolved, output, reader);
  CHECK(reader.ok());
  return std::get<Accuracy>(metrics.at(0).rule).yes_or_no;
}

std::size_t output_errors(const char* name, Shape output, std::int64_t classes, Shape target) {
  Reader reader;
  match_targets(resolve_loss(loss(name), FinalActivation::none, reader), output, {classes, target}, reader);
  return reader.diagnostics().size();
}

}  // namespace

TEST_CASE("a final softmax or sigmoid is folded into a loss that it fits") {
  const auto folded = [](const Choice& choice, FinalActivation network, std::size_t errors = 0) {
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(choice, network, reader);
    CHECK(reader.diagnostics().size() == errors);
    return resolved.folded;
  };
  const auto none = FinalActivation::none, softmax = FinalActivation::softmax, sigmoid = FinalActivation::sigmoid;
  const char* sparse = "sparse_categorical_crossentropy";
  CHECK(folded(loss(sparse), softmax) == softmax);
  CHECK(folded(loss(sparse), none) == none);
  CHECK(folded(loss(sparse, "from_logits", "false"), softmax) == softmax);
  CHECK(folded(loss(sparse, "from_logits", "true"), softmax) == none);
  CHECK(folded(loss("binary_crossentropy"), sigmoid) == sigmoid);
  CHECK(folded(loss("mean_squared_error"), sigmoid) == none);
  folded(loss(sparse, "from_logits", "false"), none, 1);
  folded(loss(sparse), sigmoid, 1);
  folded(loss("binary_crossentropy"), softmax, 1);
}

TEST_CASE("the ignored target may be any whole number") {
  for (const auto& [text, number] : {std::pair{"-100", -100}, {"0", 0}, {"70000", 70000}}) {
    Reader reader;
    const ResolvedLoss resolved =
        resolve_loss(loss("sparse_categorical_crossentropy", "ignore_index", text), FinalActivation::none, reader);
    CHECK(resolved.ignore_index == number);
  }
}

TEST_CASE("label smoothing reaches the loss") {
  Reader reader;
  const Choice choice = loss("categorical_crossentropy", "label_smoothing", "0.1");
  const ResolvedLoss resolved = resolve_loss(choice, FinalActivation::none, reader);
  CHECK(std::get<CategoricalCrossentropy>(resolved.rule).label_smoothing == 0.1f);
}

TEST_CASE("the kind of accuracy depends on the loss") {
  CHECK_FALSE(accuracy_is_of_answers("sparse_categorical_crossentropy", {4, 10}));
  CHECK_FALSE(accuracy_is_of_answers("categorical_crossentropy", {4, 10}));
  CHECK(accuracy_is_of_answers("binary_crossentropy", {4, 1}));
  CHECK_FALSE(accuracy_is_of_answers("mean_squared_error", {4, 10}));
}

TEST_CASE("metrics that have no meaning for the loss are refused") {
  Reader reader;
  const ResolvedLoss squared = resolve_loss(loss("mean_squared_error"), FinalActivation::none, reader);
  const ResolvedLoss sparse = resolve_loss(loss("sparse_categorical_crossentropy"), FinalActivation::softmax, reader);
  resolve_metrics({metric("accuracy")}, squared, {4, 1}, reader);
  CHECK(reader.diagnostics().size() == 1);
  resolve_metrics({metric("mean_absolute_error")}, sparse, {4, 10}, reader);
  CHECK(reader.diagnostics().size() == 2);
  resolve_metrics({metric("accuracy"), metric("accuracy")}, sparse, {4, 10}, reader);
  CHECK(reader.diagnostics().size() == 3);
  const auto top = resolve_metrics({metric("top_k_categorical_accuracy")}, sparse, {4, 10}, reader);
  CHECK(std::get<TopKCategoricalAccuracy>(top.at(0).rule).k == 5);
  CHECK(reader.diagnostics().size() == 3);
}

TEST_CASE("metrics are accepted with the losses that they fit") {
  const auto errors = [](const char* name, const char* with, Shape output) {
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(loss(with), FinalActivation::none, reader);
    resolve_metrics({metric(name)}, resolved, output, reader);
    return reader.diagnostics().size();
  };
  for (const char* name : {"precision", "recall", "f1_score", "specificity", "mean_iou"}) {
    CHECK(errors(name, "sparse_categorical_crossentropy", {4, 10}) == 0);
    CHECK(errors(name, "categorical_hinge", {4, 10}) == 0);
    CHECK(errors(name, "dice", {4, 8, 8, 1}) == 0);
    CHECK(errors(name, "mean_squared_error", {4, 10}) == 1);
    CHECK(errors(name, "sparse_categorical_crossentropy", {4, 10001}) == 1);
  }
  for (const char* name : {"mean_squared_error", "root_mean_squared_error", "mean_absolute_percentage_error",
                           "r2_score", "cosine_similarity", "log_cosh", "poisson", "hinge", "squared_hinge"}) {
    CHECK(errors(name, "huber", {4, 3}) == 0);
    CHECK(errors(name, "sparse_categorical_crossentropy", {4, 10}) == 1);
  }
  Reader reader;
  const ResolvedLoss focal = resolve_loss(loss("binary_focal_crossentropy"), FinalActivation::sigmoid, reader);
  const auto metrics = resolve_metrics({metric("recall")}, focal, {4, 7}, reader);
  CHECK(reader.ok());
  CHECK(focal.folded == FinalActivation::sigmoid);
  CHECK(std::get<Recall>(metrics.at(0).rule).yes_or_no);
  CHECK(sums_of(metrics.at(0).rule) == 28);
}

TEST_CASE("cross-entropies and divergences read the input of a loss that has it, and otherwise probabilities") {
  struct Case {
    const char *metric, *loss;
    FinalActivation network;
    bool accepted, of_predictions;
  };
  const auto none = FinalActivation::none, softmax = FinalActivation::softmax, sigmoid = FinalActivation::sigmoid;
  const Case cases[] = {
      {"categorical_crossentropy", "sparse_categorical_crossentropy", softmax, true, false},
      {"categorical_crossentropy", "categorical_crossentropy", none, true, false},
      {"categorical_crossentropy", "mean_squared_error", none, true, false},
      {"categorical_crossentropy", "binary_crossentropy", sigmoid, true, true},
      {"categorical_crossentropy", "binary_crossentropy", none, false, false},
      {"kl_divergence", "categorical_crossentropy", softmax, true, false},
      {"kl_divergence", "sparse_categorical_crossentropy", softmax, false, false},
      {"kl_divergence", "binary_crossentropy", sigmoid, true, true},
      {"kl_divergence", "binary_crossentropy", none, false, false},
      {"binary_crossentropy", "binary_crossentropy", sigmoid, true, false},
      {"binary_crossentropy", "dice", none, true, false},
      {"binary_crossentropy", "categorical_crossentropy", softmax, true, true},
      {"binary_crossentropy", "categorical_crossentropy", none, false, false},
      {"binary_crossentropy", "sparse_categorical_crossentropy", softmax, false, false},
      {"categorical_hinge", "categorical_hinge", none, true, false},
      {"categorical_hinge", "categorical_crossentropy", softmax, true, true},
      {"categorical_hinge", "sparse_categorical_crossentropy", softmax, false, false},
      {"huber", "mean_squared_error", none, true, false},
  };
  for (const Case& which : cases) {
    CAPTURE(which.metric, which.loss);
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(loss(which.loss), which.network, reader);
    REQUIRE(reader.ok());
    const auto metrics = resolve_metrics({metric(which.metric)}, resolved, {4, 3}, reader);
    CHECK(reader.ok() == which.accepted);
    if (which.accepted) CHECK(metrics.at(0).of_predictions == which.of_predictions);
  }
  Choice sparse;
  Reader reader;
  REQUIRE(read_choice(metric_choices(), scalar_node("sparse_categorical_crossentropy"), reader, sparse));
  CHECK(sparse.name == "categorical_crossentropy");
}

TEST_CASE("Keras' other names are aliases of losses and metrics") {
  Reader reader;
  CHECK(loss("mse").name == "mean_squared_error");
  CHECK(loss("mae").name == "mean_absolute_error");
  CHECK(loss("msle").name == "mean_squared_logarithmic_error");
  CHECK(loss("kld").name == "kl_divergence");
  std::vector<Choice> metrics;
  Node list = sequence_node();
  for (const char* name : {"acc", "mae", "rmse", "msle"}) list.items.push_back(scalar_node(name));
  REQUIRE(read_choices(metric_choices(), list, reader, metrics));
  CHECK(metrics.at(0).name == "accuracy");
  CHECK(metrics.at(1).name == "mean_absolute_error");
  CHECK(metrics.at(2).name == "root_mean_squared_error");
  CHECK(metrics.at(3).name == "mean_squared_logarithmic_error");
  for (const char* name : {"binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"}) {
    Choice choice;
    REQUIRE(read_choice(metric_choices(), scalar_node(name), reader, choice));
    CHECK(choice.name == "accuracy");
  }
  const auto twice = [](const ChoiceTable& table) {
    std::set<std::string> names;
    std::size_t count = 0;
    for (const Section& choice : table.choices) {
      names.insert(choice.name);
      names.insert(choice.aliases.begin(), choice.aliases.end());
      count += 1 + choice.aliases.size();
    }
    return count - names.size();
  };
  CHECK(twice(loss_choices()) == 0);
  CHECK(twice(metric_choices()) == 0);
}

TEST_CASE("auc is computed from yes-or-no answers or from probabilities of classes") {
  const auto auc = [](const char* name, FinalActivation network, std::size_t errors) {
    Reader reader;
    const auto metrics = resolve_metrics({metric("auc")}, resolve_loss(loss(name), network, reader), {4, 3}, reader);
    CHECK(reader.diagnostics().size() == errors);
    return metrics.at(0);
  };
  const ResolvedMetric answers = auc("binary_crossentropy", FinalActivation::sigmoid, 0);
  CHECK(std::get<Auc>(answers.rule).of_logits);
  CHECK_FALSE(answers.of_predictions);
  const ResolvedMetric classes = auc("categorical_crossentropy", FinalActivation::softmax, 0);
  CHECK_FALSE(std::get<Auc>(classes.rule).of_logits);
  CHECK(classes.of_predictions);
  auc("categorical_crossentropy", FinalActivation::none, 1);
  auc("sparse_categorical_crossentropy", FinalActivation::softmax, 1);
  auc("mean_squared_error", FinalActivation::sigmoid, 1);
}

TEST_CASE("the output must fit the loss and the data") {
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 10}, 10, {}) == 0);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 10}, 12, {}) == 1);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 1}, 2, {}) == 1);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 7, 7, 4}, 4, {}) == 1);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 10}, 0, {10}) == 1);
  CHECK(output_errors("categorical_crossentropy", {8, 10}, 9, {}) == 1);
  CHECK(output_errors("binary_crossentropy", {8, 1}, 2, {}) == 0);
  CHECK(output_errors("binary_crossentropy", {8, 3}, 2, {}) == 1);
  CHECK(output_errors("mean_squared_error", {8, 3}, 0, {3}) == 0);
  CHECK(output_errors("mean_squared_error", {8, 3}, 0, {4}) == 1);
  CHECK(output_errors("categorical_hinge", {8, 10}, 10, {}) == 0);
  CHECK(output_errors("hinge", {8, 1}, 2, {}) == 0);
  CHECK(output_errors("hinge", {8, 3}, 2, {}) == 1);
  CHECK(output_errors("sparse_categorical_focal_crossentropy", {8, 10}, 0, {10}) == 1);
}

TEST_CASE("there may be a target for each position of a sample") {
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 6, 10}, 10, {6}) == 0);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 6, 10}, 10, {7}) == 1);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 10}, 10, {6}) == 1);
  CHECK(output_errors("sparse_categorical_crossentropy", {8, 6, 10}, 12, {6}) == 1);
  CHECK(output_errors("categorical_crossentropy", {8, 4, 4, 10}, 10, {4, 4}) == 0);
  CHECK(output_errors("mean_squared_error", {8, 6, 3}, 0, {18}) == 0);
  CHECK(output_errors("dice", {8, 6, 6, 1}, 2, {6, 6}) == 0);
  CHECK(output_errors("mean_squared_error", {8, 6, 3}, 0, {6}) == 1);
  CHECK(target_type(TargetEncoding::class_number, {8, 6, 10}) == TensorType{{8, 6}, DType::int32});
  CHECK(target_type(TargetEncoding::values, {8, 6, 10}) == TensorType{{8, 6, 10}, DType::float32});
  CHECK(sample_target_type(TargetEncoding::class_number, {10, {6}}) == TensorType{{6}, DType::int32});
  CHECK(sample_target_type(TargetEncoding::one_hot, {10, {6}}) == TensorType{{6, 10}, DType::float32});
}

TEST_CASE("ctc has sequences of class numbers as targets, whatever the number of steps is") {
  CHECK(output_errors("ctc", {8, 6, 10}, 10, {4}) == 0);
  CHECK(output_errors("ctc", {8, 6, 10}, 10, {}) == 0);
  CHECK(output_errors("ctc", {8, 6, 10}, 0, {}) == 0);  // unknown
  CHECK(output_errors("ctc", {8, 6, 10}, 12, {4}) == 1);
  CHECK(output_errors("ctc", {8, 10}, 10, {4}) == 1);
  CHECK(output_errors("ctc", {8, 6, 10}, 10, {4, 4}) == 1);
  CHECK(output_errors("ctc", {8, 6, 10}, 0, {4}) == 1);
  CHECK(target_length({8, 6, 10}, {10, {4}}) == 4);
  CHECK(target_length({8, 6, 10}, {10, {}}) == 1);
  CHECK(target_length({8, 6, 10}, {}) == 6);
  const auto errors = [](const Choice& choice, const TargetInfo& targets, const Shape& weight) {
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(choice, FinalActivation::none, reader);
    match_targets(resolved, {8, 6, 10}, targets, reader);
    match_weights(resolved, {8, 6, 10}, weight, reader);
    return reader.diagnostics().size();
  };
  CHECK(errors(loss("ctc", "mask_index", "9"), {10, {4}}, {}) == 0);
  CHECK(errors(loss("ctc", "mask_index", "10"), {10, {4}}, {}) == 1);
  CHECK(errors(loss("ctc"), {10, {4}}, {6}) == 1);  // weights of steps
  CHECK(errors(loss("ctc"), {.classes = 10, .shape = {4}, .min_steps = 6}, {}) == 0);
  CHECK(errors(loss("ctc"), {.classes = 10, .shape = {4}, .min_steps = 7}, {}) == 1);
  CHECK(errors(loss("ctc"), {.classes = 10, .shape = {4}, .mixed = true}, {}) == 1);
  Reader reader;
  const ResolvedLoss resolved = resolve_loss(loss("ctc", "mask_index", "3"), FinalActivation::softmax, reader);
  CHECK(resolved.folded == FinalActivation::softmax);
  const auto metrics = resolve_metrics({metric("edit_distance")}, resolved, {8, 6, 10}, reader);
  CHECK(reader.ok());
  CHECK(std::get<EditDistance>(metrics.at(0).rule).mask_index == 3);
  resolve_metrics({metric("accuracy")}, resolved, {8, 6, 10}, reader);
  CHECK(reader.diagnostics().size() == 1);
  const ResolvedLoss sparse = resolve_loss(loss("sparse_categorical_crossentropy"), FinalActivation::softmax, reader);
  resolve_metrics({metric("sequence_accuracy")}, sparse, {8, 6, 10}, reader);
  CHECK(reader.diagnostics().size() == 2);
}

TEST_CASE("whole numbers of positions are refused with the loss that reads them") {
  const auto problem = [](const char* name, const Shape& output) {
    Reader reader;
    match_targets(resolve_loss(loss(name), FinalActivation::none, reader), output, {0, {6}}, reader);
    REQUIRE(reader.diagnostics().size() == 1);
    return reader.diagnostics()[0].message;
  };
  const std::string remedy = "or use sparse_categorical_crossentropy if they are classes of positions";
  CHECK(problem("categorical_crossentropy", {8, 6, 10}).find(remedy) != std::string::npos);
  CHECK(problem("categorical_crossentropy", {8, 5, 10}).find(remedy) == std::string::npos);
  CHECK(problem("mean_squared_error", {8, 6, 10}).find(remedy) == std::string::npos);
}

TEST_CASE("targets have the encoding that the loss reads") {
  const auto encoding = [](const char* name, std::int64_t width, std::int64_t classes, LabelMode mode,
                           const char* remedy = "") {
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(loss(name), FinalActivation::none, reader);
    const TargetEncoding found = match_targets(resolved, {8, width}, {classes, {}, mode}, reader);
    CAPTURE(name, width, classes, name_of(mode));
    REQUIRE(reader.diagnostics().size() == (*remedy == 0 ? 0u : 1u));
    if (*remedy != 0) CHECK(reader.diagnostics()[0].message.find(remedy) != std::string::npos);
    return found;
  };
  const char *sparse = "sparse_categorical_crossentropy", *categorical = "categorical_crossentropy";
  const char *binary = "binary_crossentropy", *squared = "mean_squared_error";
  const LabelMode number = LabelMode::integer, one_hot = LabelMode::categorical, zero_or_one = LabelMode::binary;
  CHECK(encoding(sparse, 12, 10, number) == TargetEncoding::class_number);
  CHECK(encoding(categorical, 10, 10, number) == TargetEncoding::one_hot);
  CHECK(encoding(binary, 1, 2, number) == TargetEncoding::class_value);
  CHECK(encoding(binary, 2, 2, number) == TargetEncoding::one_hot);
  CHECK(encoding(squared, 1, 10, number) == TargetEncoding::class_value);
  CHECK(encoding(squared, 10, 10, number) == TargetEncoding::one_hot);
  CHECK(encoding(categorical, 10, 10, one_hot) == TargetEncoding::one_hot);
  CHECK(encoding(binary, 5, 5, one_hot) == TargetEncoding::one_hot);
  CHECK(encoding(squared, 10, 10, one_hot) == TargetEncoding::one_hot);
  CHECK(encoding(binary, 1, 2, zero_or_one) == TargetEncoding::class_value);
  CHECK(encoding(squared, 1, 2, zero_or_one) == TargetEncoding::class_value);
  encoding(sparse, 10, 10, one_hot, "categorical_crossentropy");
  encoding(sparse, 2, 2, zero_or_one, "binary_crossentropy");
  encoding(categorical, 2, 2, zero_or_one, "leave label_mode out");
  encoding(binary, 1, 2, one_hot, "2 outputs");
  encoding(binary, 2, 2, zero_or_one, "1 output");
  encoding(binary, 1, 3, number, "3 classes");
  encoding(squared, 3, 10, number, "10 classes");
  CHECK(target_type(TargetEncoding::class_number, {8, 10}) == TensorType{{8}, DType::int32});
  CHECK(target_type(TargetEncoding::one_hot, {8, 3}) == TensorType{{8, 3}, DType::float32});
  CHECK(target_type(TargetEncoding::class_value, {8, 1}) == TensorType{{8, 1}, DType::float32});
}

TEST_CASE("perplexity follows from the cross-entropy, also with further terms, and is refused for other losses") {
  const auto wants = [](const Choice& of_loss) {
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(of_loss, FinalActivation::none, reader);
    CHECK(resolve_metrics({metric("perplexity"), metric("perplexity")}, resolved, {4, 10}, reader).empty());
    CHECK(reader.diagnostics().size() == 1);  // named twice
    CHECK_FALSE(wants_perplexity({}, resolved, reader));
    CHECK(wants_perplexity({metric("perplexity")}, resolved, reader));
    return reader.diagnostics().size() == 1;
  };
  CHECK(wants(loss("sparse_categorical_crossentropy")));
  CHECK(wants(loss("categorical_crossentropy")));
  CHECK(wants(loss("categorical_crossentropy", "label_smoothing", "0.1")));
  CHECK(wants(loss("sparse_categorical_crossentropy", "z_loss", "1e-4")));
  CHECK_FALSE(wants(loss("mean_squared_error")));
  ResolvedOutput one, two;
  one.name = "one", two.name = "two";
  two.rows_counted = 6;  // positions of a sample
  two.weight = 0.5;
  one.perplexity = two.perplexity = true;
  MetricMeans means(metric_results({one, two}));
  means.add(std::vector{8.0, 30.0, 10.0}, 10);
  means.add(std::vector{7.0, 33.0, 10.0}, 10);
  CHECK(means.values().at("one_perplexity") == Approx(std::exp(15.0 / 20)));
  CHECK(means.values().at("two_perplexity") == Approx(std::exp(63.0 / 120)));
  // The losses of both outputs, the cross-entropy of the second one, and the weights.
  two.plain_crossentropy = SparseCategoricalCrossentropy{};
  MetricMeans apart(metric_results({one, two}));
  apart.add(std::vector{15.0, 63.0, 45.0, 20.0}, 20);
  CHECK(apart.values().at("one_perplexity") == Approx(std::exp(15.0 / 20)));
  CHECK(apart.values().at("two_perplexity") == Approx(std::exp(45.0 / 120)));
}

TEST_CASE("the cross-entropy without further terms is a loss of its own only if the loss has such terms") {
  SparseCategoricalCrossentropy rule;
  CHECK_FALSE(crossentropy_without_terms(rule));
  CHECK_FALSE(crossentropy_without_terms(MeanSquaredError{}));
  rule.z_loss = 0.1f;
  rule.label_smoothing = 0.2f;
  const auto plain = crossentropy_without_terms(rule);
  REQUIRE(plain);
  CHECK(std::get<SparseCategoricalCrossentropy>(*plain).z_loss == 0);
  CHECK(std::get<SparseCategoricalCrossentropy>(*plain).label_smoothing == 0);
}

TEST_CASE("bits_per_byte follows from the cross-entropy and the bytes of tokens, and is refused without text") {
  const ByteCounts bytes = std::make_shared<const std::vector<float>>(10, 3.0f);
  TargetInfo text;
  text.token_bytes = [&] { return bytes; };
  const auto found = [](const Choice& of_loss, const TargetInfo& targets, std::size_t errors) {
    Reader reader;
    const ResolvedLoss resolved = resolve_loss(of_loss, FinalActivation::none, reader);
    CHECK(bytes_for_bits_per_byte({}, resolved, targets, reader) == nullptr);
    const ByteCounts counts = bytes_for_bits_per_byte({metric("bits_per_byte")}, resolved, targets, reader);
    CHECK(reader.diagnostics().size() == errors);
    return counts;
  };
  CHECK(found(loss("sparse_categorical_crossentropy"), text, 0) == bytes);
  CHECK(found(loss("sparse_categorical_crossentropy"), {}, 1) == nullptr);
  CHECK(found(loss("sparse_categorical_crossentropy", "label_smoothing", "0.1"), text, 0) == bytes);
  found(loss("mean_squared_error"), text, 1);
  ResolvedOutput one, two;
  one.name = "one", two.name = "two";
  two.token_bytes = bytes;
  MetricMeans means(metric_results({one, two}));
  // The losses of both outputs, the bytes of the second one, and the weights.
  means.add(std::vector{8.0, 30.0, 12.0, 10.0}, 10);
  means.add(std::vector{7.0, 33.0, 18.0, 10.0}, 10);
  CHECK(means.values().at("two_bits_per_byte") == Approx(63.0 / 30 / std::log(2.0)));
  CHECK(means.values().size() == 4);
  // The losses, the bytes and the cross-entropy of the second output, and the weights.
  two.plain_crossentropy = SparseCategoricalCrossentropy{};
  two.perplexity = true;
  MetricMeans apart(metric_results({one, two}));
  apart.add(std::vector{15.0, 63.0, 30.0, 45.0, 20.0}, 20);
  CHECK(apart.values().at("two_bits_per_byte") == Approx(45.0 / 30 / std::log(2.0)));
  CHECK(apart.values().at("two_perplexity") == Approx(std::exp(45.0 / 20)));
}

TEST_CASE("means over uneven batches are the means over all samples") {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(0, 5);
  ResolvedOutput output;
  output.metrics = {{"accuracy", Accuracy{}}, {"auc", Auc{}}};
  const std::vector<MetricResult> results = metric_results({output});
  MetricMeans whole(results), other(results);
  CHECK(whole.values().empty());
  REQUIRE(whole.sums().size() == 2 + 400 + 1);
  double losses = 0, hits = 0, samples = 0;
  for (const int batch : {64, 64, 7, 1}) {
    double loss = 0, right = 0;
    for (int i = 0; i < batch; ++i) {
      loss += uniform(random);
      right += static_cast<double>(random() % 2);
    }
    std::vector<double> sums(403);
    sums[0] = loss, sums[1] = right;
    sums[2 + 150] = 0.75 * batch, sums[2 + 200 + 50] = 0.5 * batch;  // answers yes at 3/4 and answers no at 1/4
    sums[402] = 0.5 * batch;                                         // each sample weighs 1/2
    (batch == 7 ? other : whole).add(sums, batch);
    losses += loss;
    hits += right;
    samples += batch;
  }
  whole.add(other);
  CHECK(whole.count() == samples);
  CHECK(whole.values().at("loss") == Approx(losses / samples));
  CHECK(whole.values().at("accuracy") == Approx(hits / (0.5 * samples)));
  CHECK(whole.values().at("auc") == 1);
  CHECK(whole.sums(results[2]).size() == 400);
  output.metrics.pop_back();
  output.rows_each = output.rows_counted = 4;  // positions of a sample
  MetricMeans rows(metric_results({output}));
  rows.add(std::vector{30.0, 9.0, 5.0}, 5);
  CHECK(rows.values() == std::map<std::string, double>{{"loss", 1.5}, {"accuracy", 0.45}});
  rows.add(std::vector{30.0, 0.0, 0.0}, 5);  // samples of weight 0
  CHECK(rows.values() == std::map<std::string, double>{{"loss", 1.5}, {"accuracy", 0.45}});
  rows.clear();
  rows.add(std::vector{0.0, 0.0, 0.0}, 5);
  CHECK(rows.values().at("loss") == 0);
  CHECK(std::isnan(rows.values().at("accuracy")));
  whole.clear();
  CHECK(whole.values().empty());
}

}  // namespace trainctl::metrics_test
