// Tests values, sections and choices that are read from documents built by hand.
#include "core/spec/values.h"

#include "test/catch.h"

namespace trainctl::values_test {
namespace {

enum class Mode { same, valid };

struct Adam : Options {
  double learning_rate = 1e-3;
  std::optional<double> decay;
  static Keys<Adam> keys() {
    return Keys<Adam>("adam", "Adam.")
        .key("learning_rate", &Adam::learning_rate, "Step size.", more_than(0))
        .key("decay", &Adam::decay, "Decay.");
  }
};
struct Plain : Options {
  static Keys<Plain> keys() { return Keys<Plain>("plain", "No options."); }
};
const ChoiceTable& optimizers() {
  static const ChoiceTable table{"optimizer", {Adam::keys(), Plain::keys()}};
  return table;
}

// A layer that contains layers: tables may refer to themselves.
const ChoiceTable& layers();
struct Dense : Options {
  std::string name;
  std::int64_t units = 0;
  std::array<std::int64_t, 2> kernel{3, 3};
  std::variant<Mode, std::int64_t> padding = Mode::valid;
  static Keys<Dense> keys();
};
struct Block : Options {
  ChoicesOf<layers> inner;
  static Keys<Block> keys();
};
struct Images : Options {
  Path path;
  int quality = 90;
  static Keys<Images> keys() {
    return Keys<Images>("images", "A folder.")
        .required("path", &Images::path, "Where.")
        .key("quality", &Images::quality, "Of JPEG.", between(1, 100));
  }
};
const ChoiceTable& datasets() {
  static const ChoiceTable table{"dataset", {Images::keys(), Plain::keys()}};
  return table;
}
struct Spec {
  ChoiceOf<datasets> dataset;
  ChoiceOf<optimizers> optimizer{"adam"};
  ChoicesOf<layers> model;
  Auto<int> workers;
  Duration every = Duration::epochs(1);
  Size bucket = Size::megabytes(25);
  std::map<std::string, int> hosts;
  std::vector<double> mean;
  std::string title;
  static Keys<Spec> keys() {
    return Keys<Spec>("spec", "All.")
        .flattened("dataset", &Spec::dataset, "Which data.")
        .key("optimizer", &Spec::optimizer, "Which rule.")
        .key("model", &Spec::model, "Layers.")
        .key("workers", &Spec::workers, "Threads.", at_least(1))
        .key("every", &Spec::every, "How often.")
        .key("bucket", &Spec::bucket, "How large.")
        .key("hosts", &Spec::hosts, "Slots of each.", at_least(1))
        .key("mean", &Spec::mean, "Of channels.")
        .key("title", &Spec::title, "Name.");
  }
};

Node text(std::string value) { return scalar_node(std::move(value)); }
Node map(std::vector<std::pair<std::string, Node>> entries) {
  Node node = map_node();
  for (auto& [key, value] : entries) append(node, key, value);
  return node;
}

}  // namespace
}  // namespace trainctl::values_test

template <>
struct trainctl::EnumNames<trainctl::values_test::Mode> {
  static constexpr EnumName<values_test::Mode> names[] = {{values_test::Mode::same, "same"},
                                                          {values_test::Mode::valid, "valid"}};
};

namespace trainctl::values_test {
namespace {

Keys<Dense> Dense::keys() {
  return Keys<Dense>("dense", "Dense.")
      .required("units", &Dense::units, "Outputs.", at_least(1))
      .key("name", &Dense::name, "Name.")
      .key("kernel", &Dense::kernel, "Size.", at_least(1))
      .key("padding", &Dense::padding, "Padding.");
}
Keys<Block> Block::keys() { return Keys<Block>("block", "Block.").key("inner", &Block::inner, "Layers."); }
const ChoiceTable& layers() {
  static const ChoiceTable table{"layer", {Dense::keys(), Block::keys(), Plain::keys()}};
  return table;
}

std::string errors_of(const Node& node) {
  Spec spec;
  Reader reader;
  section_of<Spec>().read(node, reader, &spec);
  try {
    reader.throw_if_failed();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Node good_document() {
  Node path = text("photos/a");
  path.base_directory = "/data";
  return map(
      {{"path", path},
       {"dataset", text("images")},
       {"optimizer", map({{"name", text("adam")}, {"decay", text("1/4")}})},
       {"model", sequence_node({map({{"dense", map({{"units", text("5")}, {"padding", text("2")}})}}), text("plain"),
                                map({{"block", map({{"inner", sequence_node({text("plain")})}})}})})},
       {"every", text("250")},
       {"bucket", text("16 MiB")},
       {"hosts", map({{"n1", text("8")}})},
       {"mean", sequence_node({text("0.5"), text("1e-3")})},
       {"title", text("5")}});
}

}  // namespace

TEST_CASE("a section reads every kind of value") {
  Spec spec;
  Reader reader;
  REQUIRE(section_of<Spec>().read(good_document(), reader, &spec));
  CHECK(spec.dataset.as<Images>().path.text == "/data/photos/a");
  CHECK(spec.dataset.as<Images>().quality == 90);
  CHECK(spec.optimizer.as<Adam>().decay == 0.25);
  REQUIRE(spec.model.size() == 3);
  CHECK(spec.model[0].as<Dense>().units == 5);
  CHECK(std::get<1>(spec.model[0].as<Dense>().padding) == 2);
  CHECK(spec.model[2].as<Block>().inner[0].name == "plain");
  CHECK(spec.workers.is_auto());
  CHECK(spec.every == Duration::steps(250));
  CHECK(spec.bucket.bytes == 16 * 1024 * 1024);
  CHECK(spec.hosts.at("n1") == 8);
  CHECK(spec.mean == std::vector<double>{0.5, 1e-3});
  CHECK(spec.title == "5");
}

TEST_CASE("a section is the same after it is written and read, and is written with every default") {
  Spec spec;
  Reader reader;
  REQUIRE(section_of<Spec>().read(good_document(), reader, &spec));
  const Node written = section_of<Spec>().write(&spec);
  CHECK(flow_text(written) ==
        "{dataset: images, path: /data/photos/a, quality: 90, optimizer: {name: adam, learning_rate: 0.001, decay: "
        "0.25}, "
        "model: [{dense: {units: 5, name: \"\", kernel: [3, 3], padding: 2}}, plain, {block: {inner: [plain]}}], "
        "workers: auto, every: 250 steps, bucket: 16777216 B, hosts: {n1: 8}, mean: [0.5, 0.001], title: \"5\"}");
  Spec again;
  REQUIRE(section_of<Spec>().read(written, reader, &again));
  CHECK(differences(written, section_of<Spec>().write(&again)).empty());
}

TEST_CASE("each wrong value has its message") {
  const auto with = [](const std::string& key, Node value) {
    return map({{"dataset", text("plain")}, {key, std::move(value)}});
  };
  CHECK(errors_of(with("workers", text("x"))) == "workers must be a whole number or auto, not 'x'");
  CHECK(errors_of(with("workers", text("0"))) == "workers must be at least 1, not 0");
  CHECK(errors_of(with("hosts", map({{"a", text("0")}}))) == "hosts.a must be at least 1, not 0");
  CHECK(errors_of(with("optimizer", text("adm"))) == "unknown optimizer 'adm'; did you mean 'adam'?");
  CHECK(errors_of(with("optimizer", text("zzzzzzz"))) == "unknown optimizer 'zzzzzzz'; there is adam or plain");
  CHECK(errors_of(with("quality", text("3"))) == "unknown key 'quality' in spec with dataset plain");
  CHECK(errors_of(map({{"dataset", text("images")}, {"qualty", text("3")}, {"path", text("x")}})) ==
        "unknown key 'qualty' in spec with dataset images; did you mean 'quality'?");
  CHECK(errors_of(map({{"dataset", text("images")}})) == "images needs 'path': Where.");
  CHECK(errors_of(map({{"quality", text("3")}})) == "spec needs 'dataset': Which data.");
  CHECK(errors_of(
            with("model", sequence_node({map({{"dense", map({{"units", text("5")}, {"padding", text("sam")}})}})}))) ==
        "padding must be same, valid or a whole number, not 'sam'; did you mean 'same'?");
  CHECK(errors_of(with("model", sequence_node({text("dense")}))) == "dense needs 'units': Outputs.");
  CHECK(errors_of(with("bucket", text("25 Mb"))) == "bucket must be a size such as '25 MB', not '25 Mb'");
}

TEST_CASE("numbers and quantities are read from their texts") {
  CHECK(parse_number("1/255") == 1.0 / 255);
  CHECK_FALSE(parse_number("inf"));
  CHECK_FALSE(parse_number("1/0"));
  CHECK(parse_integer("1e6") == 1000000);
  CHECK_FALSE(parse_integer("1.5"));
  CHECK(parse_duration("0.5 epoch") == Duration::epochs(0.5));
  CHECK(parse_duration("2 min") == Duration::seconds(120));
  CHECK_FALSE(parse_duration("2.5 steps"));
  CHECK_FALSE(parse_duration("epochs"));
  CHECK(parse_seconds("1.5 h") == Seconds{5400});
  CHECK(parse_size("1.5 GB") == Size{1500000000});
  CHECK(to_string(Duration::epochs(1)) == "1 epoch");
  CHECK(to_string(Size::megabytes(25)) == "25 MB");
  CHECK(nearest("unitz", {"use_bias", "units"}) == "units");
  CHECK(nearest("name", {"units", "use_bias"}).empty());
}

}  // namespace trainctl::values_test
