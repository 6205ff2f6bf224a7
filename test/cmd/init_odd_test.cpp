// Tests init on data whose names, layout or types are unusual: it says what it assumes, or what to do.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/cmd/init_cases.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::init_odd_test {
using namespace init_cases;
namespace {

std::string floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return raw(values);
}

// Writes an .npz file of 40 samples of 5 values, or of 8x8 colour images, and these targets.
std::function<void(const Folder&)> with_targets(const std::string& path, bool images, const std::string& type,
                                                const std::string& shape, const std::string& y) {
  return [=](const Folder& folder) {
    const std::string x =
        images ? npy("|u1", "(40, 8, 8, 3)", random_bytes(40 * 192, 5)) : npy("<f4", "(40, 5)", floats(200, 2));
    folder.write(path, zip({{"x.npy", x}, {"y.npy", npy(type, shape, y)}}));
  };
}

}  // namespace

TEST_CASE("init gives configs of data with names in other scripts a name that is no option of a command") {
  const Folder folder;
  const auto line = [](int i) { return format("{},{}", i * 13 % 97, i % 2); };
  for (const auto& [data, config] :
       std::vector<std::pair<std::string, std::string>>{{"\xC3\xBCn\xC3\xAF c\xC3\xB6.csv", "n--c-.yaml"},
                                                        {"\xE6\x97\xA5\xE6\x9C\xAC.csv", "config.yaml"},
                                                        {"--x.csv", "x.yaml"}}) {
    CAPTURE(data);
    table(data, "age,kind", line)(folder);
    const Finished made = trainctl(folder, {"init", "./" + data});
    INFO(tail(made.errors));
    REQUIRE(made.code == 0);
    CHECK(std::filesystem::exists(folder / config));
    CHECK(trainctl(folder, {"check", config, "--ranks", "1", "--quiet"}).code == 0);
  }
}

TEST_CASE("init says what folders of images lack") {
  check_cases({
      {"flat",
       [](const Folder& f) {
         for (unsigned i = 0; i < 6; ++i) f.write(format("flat/cat_{}.png", i), png(8, 8, 2, random_bytes(192, i)));
       },
       false,
       {"flat: holds images, but no folders of classes", "into a folder with the name of the class"}},
  });
}

TEST_CASE("init writes a network of convolutions for arrays of images with images as targets") {
  std::vector<float> halves;
  for (int i = 0; i < 40 * 64; ++i) halves.push_back(static_cast<float>(i % 97) / 96);
  check_cases({
      {"colours.npz",
       with_targets("colours.npz", true, "|u1", "(40, 8, 8, 3)", random_bytes(40 * 192, 7)),
       true,
       {"four convolutions", "filters: 3, kernel_size: 3, padding: same}", "rescaling: {scale: 255}", "flatten",
        "mean_squared_error"}},
      {"grays.npz",
       with_targets("grays.npz", true, "|u1", "(40, 8, 8)", random_bytes(40 * 64, 8)),
       true,
       {"filters: 1, kernel_size: 3, padding: same}", "rescaling: {scale: 255}", "images of 1 channel as targets"}},
      {"shares.npz",
       with_targets("shares.npz", true, "<f4", "(40, 8, 8, 1)", raw(halves)),
       true,
       {"filters: 1, kernel_size: 3, padding: same}\n    - flatten"}},
  });
}

TEST_CASE("init tells images as targets from masks, and says what it assumed") {
  std::vector<std::int32_t> masks, depths;
  std::vector<float> flow, marked, one_hot;
  std::vector<std::uint16_t> heights;
  for (int i = 0; i < 40 * 64; ++i) {
    masks.push_back(i * 7 % 100);
    depths.push_back(i * 7 % 2000);
    heights.push_back(static_cast<std::uint16_t>(i * 23 % 50000));
    marked.push_back(static_cast<float>(i / 3 % 2));
    for (int k = 0; k < 3; ++k) one_hot.push_back(i % 3 == k ? 1.0f : 0.0f);
    for (int k = 0; k < 2; ++k) flow.push_back(static_cast<float>((i + 5 * k) % 61 - 30) / 8);
  }
  const auto gray = [](const std::string& path, const std::string& y) {
    return [=](const Folder& folder) {
      folder.write(path, zip({{"x.npy", npy("|u1", "(40, 8, 8)", random_bytes(40 * 64, 5))}, {"y.npy", y}}));
    };
  };
  std::string few;
  for (int i = 0; i < 40 * 64; ++i) few += static_cast<char>(i / 5 % 3);
  const std::string filters = "filters: 1, kernel_size: 3, padding: same}\n";
  check_cases({
      {"masks.npz",
       with_targets("masks.npz", true, "<i4", "(40, 8, 8)", raw(masks)),
       true,
       {"sparse_categorical_crossentropy",
        "taken for 100 classes of positions; if they are values, use --targets values"}},
      {"depths.npz",
       with_targets("depths.npz", true, "<i4", "(40, 8, 8)", raw(depths)),
       true,
       {filters + "    - rescaling: {scale: 1999}", "mean_squared_error"}},
      {"heights.npz",
       with_targets("heights.npz", true, "<u2", "(40, 8, 8)", raw(heights)),
       true,
       {"rescaling: {scale: 49", "the targets are taken for images, whose pixels are values", "--targets classes"}},
      {"flow.npz",
       with_targets("flow.npz", true, "<f4", "(40, 8, 8, 2)", raw(flow)),
       true,
       {"filters: 2, kernel_size: 3, padding: same}\n    - flatten"}},
      {"gray.npz",
       gray("gray.npz", npy("|u1", "(40, 8, 8)", random_bytes(40 * 64, 9))),
       true,
       {filters + "    - rescaling: {scale: 255}"}},
      {"few.npz", gray("few.npz", npy("|u1", "(40, 8, 8)", few)), true, {"3 classes for each position", "conv2d"}},
      {"few.npz",
       gray("few.npz", npy("|u1", "(40, 8, 8)", few)),
       true,
       {filters + "    - flatten"},
       {"--targets", "values"}},
      {"marked.npz",
       with_targets("marked.npz", true, "<f4", "(40, 8, 8)", raw(marked)),
       true,
       {"the targets are 0 and 1 as floats", "astype('uint8')"}},
      {"marked.npz",
       with_targets("marked.npz", true, "<f4", "(40, 8, 8)", raw(marked)),
       false,
       {"holds 0 and 1 as floats", "astype('uint8')"},
       {"--targets", "classes"}},
      {"hot.npz",
       with_targets("hot.npz", true, "<f4", "(40, 8, 8, 3)", raw(one_hot)),
       true,
       {"the targets are one-hot vectors", "argmax(-1)"}},
      {"hot.npz",
       with_targets("hot.npz", true, "<f4", "(40, 8, 8, 3)", raw(one_hot)),
       false,
       {"holds one-hot vectors", "argmax(-1)"},
       {"--targets", "classes"}},
  });
}

TEST_CASE("init says that whole numbers below 0 or stored as floats are taken for values") {
  std::vector<std::int64_t> signs;
  std::vector<float> stored;
  for (int i = 0; i < 40; ++i) {
    signs.push_back(i % 3 - 1);
    stored.push_back(static_cast<float>(i % 3));
  }
  check_cases({
      {"signs.npz",
       with_targets("signs.npz", false, "<i8", "(40,)", raw(signs)),
       true,
       {"the targets are whole numbers from -1 to 1, and are taken for values", "numpy.unique"}},
      {"floats.npz",
       with_targets("floats.npz", false, "<f4", "(40,)", raw(stored)),
       true,
       {"the targets are whole numbers from 0 to 2, and are taken for values"}},
  });
}

TEST_CASE("init reads tables with single spaces between the fields, and refuses those with more of them") {
  check_cases({
      {"spaces.csv",
       table("spaces.csv", "age size kind", [](int i) { return format("{} {} {}", i * 13 % 97, i % 7, i % 2); }),
       true,
       {"delimiter: \" \"", "target: kind"}},
      {"wide.csv",
       table("wide.csv", "age  size  kind", [](int i) { return format("{}   {}  {}", i * 13 % 97, i % 7, i % 2); }),
       false,
       {"has one field in each line, in which there are blanks", "sed -E"}},
  });
}

TEST_CASE("init leaves out numbers that are equal as float32") {
  check_cases({
      {"large.csv",
       table("large.csv", "id_number,age,kind",
             [](int i) { return format("10000000000000000000{},{},{}", 100 + i, i * 13 % 97, i % 2); }),
       true,
       {"not id_number, which holds numbers that are all equal as float32"}},
  });
}

TEST_CASE("init says how a list of JSON becomes lines") {
  std::string list = "[\n";
  for (int i = 0; i < 40; ++i) list += format("{{\"text\": \"{}\", \"label\": {}}},\n", sentence(i), i % 2);
  check_cases({
      {"texts.json",
       [list](const Folder& f) { f.write("texts.json", list + "]"); },
       false,
       {"texts.json: is a .json file", "jq -c '.[]' texts.json > texts-lines.jsonl"}},
      {"list.jsonl",
       [list](const Folder& f) { f.write("list.jsonl", list + "]"); },
       false,
       {"the line is not an object of JSON", "jq -c '.[]' list.jsonl > list-lines.jsonl"}},
  });
}

TEST_CASE("init says which fields keep it from reading a column of numbers") {
  check_cases({
      {"signs.csv",
       table("signs.csv", "gain,age,kind",
             [](int i) {
               return format("{},{},{}", i % 5 == 0 ? format("({})", i + 1) : std::to_string(i + 1), i % 9, i % 2);
             }),
       true,
       {"gain is not read: 48 fields are numbers, but '(1)' in line 2 and 11 other fields are not"}},
  });
}

}  // namespace trainctl::test::init_odd_test
