// Seeded fuzz tests: descriptions of Keras' networks with bytes changed, or with values replaced, removed and moved.
// Each network is imported or refused by one error, in bounded time. TRAINCTL_MUTATIONS sets the number of mutations of
// each description.
#include <sys/resource.h>

#include <chrono>

#include "core/base/json.h"
#include "io/datasets/arrays/zip.h"
#include "io/keras/import.h"
#include "test/catch.h"
#include "test/io/weights/support.h"
#include "test/support/files.h"
#include "test/support/mutation.h"

namespace trainctl::test::import_mutation_test {
namespace {

const std::string keras_golden = TRAINCTL_SOURCE_DIR "/test/golden/keras/";

int occurrences(const std::string& text, const std::string& part) {
  int number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++number;
  return number;
}

// A saved network whose description, a JSON text inside the file, can be replaced. In an .h5 file the new description
// must not be longer, and is padded with spaces.
class SavedNetwork {
 public:
  explicit SavedNetwork(const std::string& name) : file_(read_text(keras_golden + name)), name_(name) {
    if (is_zip()) {
      description = member("config.json");
      return;
    }
    begin_ = file_.find("{\"class_name\": \"Sequential\"");
    REQUIRE(begin_ != std::string::npos);
    std::size_t end = begin_;
    for (int level = 0; end == begin_ || level > 0; ++end) level += file_[end] == '{' ? 1 : file_[end] == '}' ? -1 : 0;
    description = file_.substr(begin_, end - begin_);
  }

  std::string description;

  // Returns the file with another description, or the unchanged file if the description is too long for an .h5 file.
  std::string with(std::string text) const {
    if (is_zip()) {
      return zip(
          {{"config.json", text}, {"metadata.json", metadata}, {"model.weights.h5", member("model.weights.h5")}});
    }
    if (text.size() > description.size()) return file_;
    text.resize(description.size(), ' ');
    return std::string(file_).replace(begin_, text.size(), text);
  }

  std::string metadata = R"({"keras_version": "3.15.1"})";

 private:
  bool is_zip() const { return name_.ends_with(".keras"); }
  std::string member(const std::string& name) const {
    const Bytes archive = open_data(keras_golden + name_);
    for (const ZipMember& found : list_zip(archive, name_)) {
      if (found.name != name) continue;
      const Bytes bytes = zip_bytes(archive, found, name).loaded();
      return {reinterpret_cast<const char*>(bytes.in_memory()), static_cast<std::size_t>(bytes.size())};
    }
    return "";
  }

  std::string file_, name_;
  std::size_t begin_ = 0;
};

void collect(Json& json, std::vector<Json*>& values) {
  values.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& item : json) collect(item, values);
}

// Removes one to three values, or replaces them by other values or by copies from elsewhere in the description.
Json with_other_values(Json json, std::mt19937& random) {
  static const Json others[] = {nullptr,
                                true,
                                false,
                                0,
                                1,
                                -1,
                                3,
                                0.5,
                                1e300,
                                -1e300,
                                4'000'000'000,
                                std::int64_t{1} << 62,
                                std::uint64_t{1} << 63,
                                "",
                                "relu",
                                "a/b",
                                "input",
                                "x{n}->y",
                                "same",
                                Json::array(),
                                Json::object(),
                                Json::array({2, 3}),
                                Json::array({nullptr, 7}),
                                Json::array({1e9, 1e9})};
  for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
    std::vector<Json*> values;
    collect(json, values);
    Json& value = *values[random() % values.size()];
    const auto inside = static_cast<std::ptrdiff_t>(random() % std::max<std::size_t>(1, value.size()));
    switch (random() % 4) {
      case 0:
        value = Json(*values[random() % values.size()]);
        break;
      case 1:
        if (value.is_structured() && !value.empty()) value.erase(std::next(value.begin(), inside));
        break;
      default:
        value = others[random() % std::size(others)];
    }
  }
  return json;
}

// Returns the error of importing a file, "" if it is imported. Any other exception than Error fails the test.
std::string error_of(const std::string& path) {
  try {
    import_keras(path, "w.safetensors");
    return "";
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool is_known = error.kind() == ErrorKind::data || error.kind() == ErrorKind::config;
    if (!is_known || text.find(path) == std::string::npos) FAIL_CHECK("another error: " << text);
    return text;
  } catch (const std::exception& error) {
    FAIL_CHECK("an exception other than Error: " << error.what());
    return error.what();
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

long peak_memory() {  // kB
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("mutated descriptions of Keras' networks: each is imported, or refused by one error") {
  const std::string name = GENERATE("cnn.keras", "functional.keras", "sequence.keras", "legacy.h5");
  const bool by_values = GENERATE(false, true);
  const TemporaryFolder folder;
  const SavedNetwork network(name);
  const std::string path = folder / name;
  write_text(path, network.with(network.description));
  REQUIRE(error_of(path).empty());
  const long memory = peak_memory();
  const Json description = Json::parse(network.description);
  std::mt19937 random(15);
  int refused = 0;
  double longest = 0;
  for (int i = 0; i < mutations(); ++i) {
    CAPTURE(name, by_values, i);
    const std::string text =
        by_values ? with_other_values(description, random).dump() : mutated(network.description, random);
    write_text(path, network.with(text));
    const auto begin = std::chrono::steady_clock::now();
    refused += !error_of(path).empty();
    longest = std::max(longest, seconds_since(begin));
  }
  CHECK(refused > mutations() / 4);
  CHECK(longest < 20);
  CHECK(peak_memory() - memory < 1'000'000);
}

TEST_CASE("descriptions that require excessive work or memory are refused immediately") {
  const TemporaryFolder folder;
  const SavedNetwork network("cnn.keras");
  const std::string path = folder / "hostile.keras";
  const auto error_with = [&](const std::string& text) {
    write_text(path, network.with(text));
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = error_of(path);
    CHECK(seconds_since(begin) < 10);
    return error;
  };
  // A network that calls `inner` on its input `calls` times.
  const auto around = [](Json inner, int calls) {
    const Json input = Json::array({"in", 0, 0, Json::object()});
    for (int i = 0; i < calls; ++i) inner["inbound_nodes"].push_back(Json::array({input}));
    const auto name = inner["config"]["name"].get<std::string>();
    const Json in{{"class_name", "InputLayer"}, {"config", {{"name", "in"}, {"batch_shape", {nullptr, 4}}}}};
    return Json{{"class_name", "Functional"},
                {"config",
                 {{"name", "n" + name},
                  {"layers", {in, std::move(inner)}},
                  {"input_layers", Json::array({Json::array({"in", 0, 0})})},
                  {"output_layers", Json::array({Json::array({name, 0, 0})})}}}};
  };
  Json nested = around({{"class_name", "Dense"}, {"config", {{"name", "d"}, {"units", 4}}}}, 1);
  CHECK(error_with(nested.dump()).find("'d/kernel'") != std::string::npos);  // valid except for its weights
  Json bare = nested;
  bare["config"]["input_layers"] = "in";
  CHECK(error_with(bare.dump()).find("not a network saved by Keras") != std::string::npos);
  for (int level = 0; level < 20; ++level) nested = around(std::move(nested), 3);
  CHECK(error_with(nested.dump()).find("more than 5000 layers") != std::string::npos);
  const Json many = around({{"class_name", "Dense"}, {"config", {{"name", "d"}, {"units", 4}}}}, 5001);
  CHECK(error_with(many.dump()).find("more than 5000 layers") != std::string::npos);

  const auto with_shape = [&](const std::string& shape) {
    std::string text = network.description;
    const std::string usual = "[null, 16, 12, 3]";
    REQUIRE(text.find(usual) != std::string::npos);
    for (std::size_t at = 0; (at = text.find(usual)) != std::string::npos;) text.replace(at, usual.size(), shape);
    return error_with(text);
  };
  CHECK_FALSE(with_shape("[null, 4611686018427387904, 4611686018427387904, 3]").empty());
  CHECK_FALSE(with_shape("[null, 1000000, 1000000, 3]").empty());
  CHECK(with_shape("[null, 18446744073709551615, 12, 3]") != "");
  CHECK(with_shape("[null, -16, 12, 3]").find("has a dimension of size -16") != std::string::npos);
  CHECK(with_shape("[null, 16.5, 12, 3]").find("not a network saved by Keras") != std::string::npos);
  CHECK(error_with(std::string(9 << 20, ' ')).find("longer than 8 MB") != std::string::npos);
  CHECK(error_with(std::string(100'000, '[')).find("its config.json") != std::string::npos);
  CHECK(error_with(std::string(1000, '[') + std::string(1000, ']')).find("100 levels") != std::string::npos);

  SavedNetwork other("cnn.keras");
  other.metadata = R"({"keras_version": 3})";
  write_text(path, other.with(other.description));
  CHECK(error_of(path).empty());  // the version only matters for files of Keras 1 and 2
}

TEST_CASE("mistakes in the description of a network name the place, the layer and the option") {
  const TemporaryFolder folder;
  const SavedNetwork network("cnn.keras");
  const std::string path = folder / "cnn.keras";
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = network.description;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    write_text(path, network.with(text));
    return error_of(path);
  };
  const Json description = Json::parse(network.description);
  const auto& layers = description.at("config").at("layers");
  const auto dense =
      std::find_if(layers.begin(), layers.end(), [](const Json& l) { return l["class_name"] == "Dense"; });
  REQUIRE(dense != layers.end());
  const std::string name = (*dense)["config"]["name"], units = "\"units\": " + (*dense)["config"]["units"].dump();
  const auto says = [&](const std::string& to, const std::string& what) {
    const std::string error = error_with(units, to);
    CAPTURE(to, error);
    CHECK(error.find("Dense '" + name + "': " + what) != std::string::npos);
    CHECK(error.find("json.exception") == std::string::npos);
  };
  says("\"units\": -4", "units must be at least 1 and at most 2147483647, not -4");
  says("\"units\": {\"a\": 1}", "'units' is {\"a\":1}, which is not as Keras writes it");
  says("\"units\": \"many\"", "units must be a whole number, not ");
  // The weights in the file have another shape.
  const std::string shape = error_with(units, "\"units\": 3");
  CAPTURE(shape);
  CHECK(shape.find("'" + name + "/kernel' is ") != std::string::npos);
  CHECK(shape.find("the network's description and the weights do not belong together: save the network again") !=
        std::string::npos);
  CHECK(shape.find("skip") == std::string::npos);
  CHECK(occurrences(shape, path) == occurrences(shape, "' in the file is "));  // once for each error

  write_text(path, network.with(network.description.substr(0, 40)));
  const std::string cut = error_of(path);
  CAPTURE(cut);
  CHECK(cut.find("its config.json is not JSON at line 1, column 41: the text ends too early") != std::string::npos);
  write_text(path, network.with("{\"class_name\": 5}"));
  CHECK(error_of(path).find("a value is a number, but must be a text") != std::string::npos);
  write_text(path, network.with("[1]"));
  CHECK(error_of(path).find("its config.json must be a JSON object, but is a list") != std::string::npos);
}

TEST_CASE("an error in a network for images of any size names the assumed size") {
  const TemporaryFolder folder;
  const SavedNetwork network("scaled.keras");
  std::string text = network.description;
  const std::string usual = R"("kernel_size": [3, 3])";
  REQUIRE(text.find(usual) != std::string::npos);
  text.replace(text.find(usual), usual.size(), R"("kernel_size": [300, 3])");
  const std::string path = folder / "scaled.keras";
  write_text(path, network.with(text));
  const std::string error = error_of(path);
  INFO(error);
  CHECK(error.find("conv2d 'first_conv'") != std::string::npos);
  CHECK(error.find("which were taken as 256 here: [256, 256, 3]") != std::string::npos);
}

}  // namespace trainctl::test::import_mutation_test
