// Tests YAML files: locations, limits, variables, includes, settings, and that written documents are read back as
// equal.
#include "io/yaml/yaml.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "core/base/format.h"
#include "io/yaml/presets.h"
#include "test/catch.h"

namespace trainctl::yaml_test {
namespace {

namespace fs = std::filesystem;

// A temporary folder, which is the working directory for the life of the object.
class Folder {
 public:
  Folder() : before_(fs::current_path()) {
    path_ = fs::temp_directory_path() / ("trainctl-yaml-" + std::to_string(::getpid()));
    fs::create_directories(path_ / "parts");
    fs::current_path(path_);
  }
  ~Folder() {
    fs::current_path(before_);
    fs::remove_all(path_);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  const fs::path& path() const { return path_; }

 private:
  fs::path before_;
  fs::path path_;
};

std::optional<std::string> variables(const std::string& name) {
  if (name == "HOME_OF_DATA") return "/data";
  if (name == "EMPTY") return "";
  return {};
}

std::string messages(const Reader& reader) {
  try {
    reader.throw_if_failed();
  } catch (const ConfigError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

Node parse(const std::string& text) {
  Reader reader;
  Node node = parse_yaml(text, "a.yaml", "/base", reader);
  expand_variables(node, variables, reader);
  CHECK(messages(reader).empty());
  return node;
}

std::string parse_error(const std::string& text) {
  Reader reader;
  Node node = parse_yaml(text, "a.yaml", "/base", reader);
  expand_variables(node, variables, reader);
  return messages(reader);
}

std::string load_error(const std::string& file) {
  Reader reader;
  load_yaml(file, variables, reader);
  return messages(reader);
}

Node set(const std::string& text, const std::string& setting) {
  Node node = parse(text);
  Reader reader;
  apply_setting(node, setting, variables, reader);
  CHECK(messages(reader).empty());
  return node;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string set_error(const std::string& text, const std::string& setting) {
  Node node = parse(text);
  Reader reader;
  apply_setting(node, setting, variables, reader);
  return messages(reader);
}

}  // namespace

TEST_CASE("values have their location, whether they are quoted, and their folder") {
  const Node root = parse("a: 1\nb:\n  - x\n  - {c: '5'}\na: 2\nd:\n");
  REQUIRE(root.entries.size() == 4);
  CHECK(root.entries[2].key == "a");
  CHECK(root.entries[2].key_location == SourceLocation{"a.yaml", 5, 1});
  CHECK(root.find("a")->text == "1");
  CHECK(root.find("a")->location == SourceLocation{"a.yaml", 1, 4});
  CHECK_FALSE(root.find("a")->quoted);
  const Node& c = *root.find("b")->items[1].find("c");
  CHECK(c.location == SourceLocation{"a.yaml", 4, 9});
  CHECK(c.quoted);
  CHECK(c.base_directory == "/base");
  CHECK(root.find("d")->is_null());
}

TEST_CASE("aliases are replaced by the values of their anchors") {
  CHECK(flow_text(parse("a: &x {k: [1, 2]}\nb: *x\n")) == "{a: {k: [1, 2]}, b: {k: [1, 2]}}");
}

TEST_CASE("merge keys add the entries of other maps") {
  CHECK(flow_text(parse("a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n")) == "{a: {k: 1, l: 2}, b: {l: 3, k: 1}}");
  CHECK(flow_text(parse("a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc:\n  <<: [*x, *y]\n  m: 4\n")) ==
        "{a: {k: 1}, b: {k: 2, l: 3}, c: {m: 4, k: 1, l: 3}}");
  CHECK(flow_text(parse("a: &x {k: 1}\nb: &y {<<: *x, l: 2}\nc: *y\n")) ==
        "{a: {k: 1}, b: {l: 2, k: 1}, c: {l: 2, k: 1}}");
  CHECK(parse_error("a: {<<: 3}\n") == "a.yaml:1:5: the value of '<<' must be a map or a list of maps, not '3'");
  CHECK(parse_error("a: {<<: [{k: 1}, 3]}\n").ends_with("not '3' in a list"));
}

TEST_CASE("merge keys hide no repeated keys") {
  CHECK(contains(parse_error("a: {<<: {k: 1, k: 2}}\n"), "a.yaml:1:16: repeated key 'k'"));
  CHECK(contains(parse_error("a: {<<: [{l: 1}, {k: 1, k: 2}]}\n"), "a.yaml:1:25: repeated key 'k'"));
  CHECK(contains(parse_error("a: {k: 0, <<: {k: 1, k: 2}}\n"), "a.yaml:1:22: repeated key 'k'"));
  const std::string twice = parse_error("a:\n  <<: {k: 1}\n  l: 2\n  <<: {m: 3}\n");
  CHECK(contains(twice, "a.yaml:4:3: repeated key '<<'; to merge several maps, list them: `<<: [*A, *B]`"));
  // The map's own keys may be those of the merged maps, and the merged maps may have the same keys.
  CHECK(flow_text(parse("a: {k: 0, <<: [{k: 1}, {k: 2}]}\n")) == "{a: {k: 0}}");
}

TEST_CASE("the time of merging keys is in proportion to their number") {
  constexpr int keys = 28000;
  const auto seconds = [](const std::string& key, std::ptrdiff_t entries) {
    std::string text = "a: &x\n";
    for (int i = 0; i < keys; ++i) text += format("  k{}: 1\n", i);
    text += format("b:\n  {}: *x\n", key);
    for (int i = 0; i < keys; ++i) text += format("  l{}: 1\n", i);
    double best = std::numeric_limits<double>::infinity();
    for (int attempt = 0; attempt < 3; ++attempt) {
      const auto begin = std::chrono::steady_clock::now();
      CHECK(std::ssize(parse(text).find("b")->entries) == entries);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  // Comparing each key with all others takes about 20 times as long as reading the text.
  CHECK(seconds("<<", 2 * keys) < 7 * seconds("other", keys + 1));
}

TEST_CASE("errors for text that is not YAML name the usual mistakes") {
  const auto hint = [](const std::string& text) {
    const std::string error = parse_error(text);
    INFO(error);
    CHECK(error.find("not YAML: ") != std::string::npos);
    const std::size_t semicolon = error.find("; ");
    return semicolon == std::string::npos ? error : error.substr(semicolon + 2);
  };
  CHECK(hint("a:\n  b 16\n  c: 1\n") == "line 2 has no ': ' between a key and its value");
  CHECK(hint("a:\n  b 16 # 1\n\n  c: 1\n") == "line 2 has no ': ' between a key and its value");
  CHECK(hint("a:\n  b:16\n  c: 1\n") == "line 2 lacks the space after ':'");
  CHECK(hint("z:\n  y: 1\na:\n   b: 16\n  c: 1\n") == "the indentation of line 5 fits no line before it");
  CHECK(hint("a:\n  b: 16\n    c: 1\n") == "line 3 is indented further than line 2, which has a value");
  CHECK(hint("a:\n  - d: {b: 3, c: 4\n  - e: 5\n") == "a bracket in line 2 is not closed");
  CHECK(hint("a: [b\nc: 1\n") == "a bracket in line 1 is not closed");
  CHECK(hint("a: %b\n") == "a value that begins with '%' needs quotes");
  CHECK(hint("a: `b`\n") == "a value that begins with '`' needs quotes");
  CHECK(hint("a: x: y\n") == "a value with ': ' in it needs quotes");
  CHECK(hint("a:\n\u00a0 b: 16\n  c: 1\n") == "line 2 begins with a no-break space instead of spaces");
  CHECK(hint("a:\n  \u2013 b: 16\n  - c: 1\n") == "line 2 begins with an en dash instead of '-'");
  CHECK(hint("a:\n\tb: 1\n") == "line 2 is indented by a tab: YAML requires spaces");
}

TEST_CASE("errors for text that is not YAML have its location") {
  CHECK(parse_error("a: [1, 2\nb: 3\n").starts_with("a.yaml:2:2: not YAML: "));
  CHECK(parse_error("a: {b: ${X}}\n").ends_with("inside [ ] and { } a value with ${...} needs quotes"));
  CHECK(parse_error("a: *nowhere\n").starts_with("a.yaml:1:4: not YAML: "));
  CHECK(parse_error("a: 1\n---\nb: 2\n") ==
        "a.yaml:2:1: a second document begins here; a config must be a single document");
  CHECK(parse_error("a: !!python/object x\n") ==
        "a.yaml:1:4: tags such as 'tag:yaml.org,2002:python/object' have no meaning here");
  CHECK(parse_error("? [a]\n: 1\n") == "a.yaml:1:3: a key must be a word, not a list");
}

TEST_CASE("hostile files are refused in bounded time and memory") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  CHECK(parse_error(bomb).find("the config has more than 200000 values") != std::string::npos);
  CHECK(parse_error("a: " + std::string(150, '[') + std::string(150, ']')) == "a.yaml:1:103: more than 100 levels");
  CHECK(parse_error("a: " + std::string(100000, '[')).starts_with("a.yaml:1:"));
  CHECK(parse_error("a: &a [*a]\n") == "a.yaml:1:8: an alias inside the value that it refers to");
  std::string copies = "a: &a " + std::string(1'000'000, 'x') + "\nb:\n";
  for (int i = 0; i < 50'000; ++i) copies += "- *a\n";
  CHECK(parse_error(copies) ==
        "a.yaml:4:3: the config has more than 4000000 bytes, with its included files and aliases");
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 3000; ++i) deep += format("a{}: &a{} [[[[[[[[*a{}]]]]]]]]\n", i, i, i - 1);
  CHECK(parse_error(deep).find("more than 100 levels") != std::string::npos);
  std::string keys;
  for (int i = 0; i < 90'000; ++i) keys += format("k{}: 1\n", i);
  CHECK(parse_error(keys).empty());
  CHECK(parse_error("a: " + std::string(9'000'000, 'x')).find("more than 4000000 bytes") != std::string::npos);
}

TEST_CASE("included files and variables are limited in size and number") {
  const Folder folder;
  std::string big;
  for (int i = 0; i < 20'000; ++i) big += format("k{}: 1\n", i);
  folder.write("big.yaml", big);
  std::string many;
  for (int i = 0; i < 90; ++i) many += format("m{}: {{include: big.yaml}}\n", i);
  folder.write("many.yaml", many);
  CHECK(load_error("many.yaml").find("the config has more than 200000 values") != std::string::npos);
  CHECK(load_error("many.yaml").find('\n') == std::string::npos);  // without errors that follow from it
  for (int i = 0; i < 1100; ++i) {
    folder.write(format("c{}.yaml", i), format("include: c{}.yaml\n", i + 1));
  }
  CHECK(load_error("c0.yaml") ==
        "c99.yaml:1:10: the config has more than 100 files, with its included files and aliases");
  std::string levels = "include: ";
  for (int i = 0; i < 40; ++i) levels = "x: {" + levels;
  for (int i = 0; i < 5; ++i) {
    folder.write(format("l{}.yaml", i),
                 levels + (i == 4 ? "leaf.yaml" : format("l{}.yaml", i + 1)) + std::string(40, '}'));
  }
  folder.write("leaf.yaml", "y: 1\n");
  CHECK(load_error("l0.yaml").find("more than 100 levels") != std::string::npos);
  Reader reader;
  Node node = parse_yaml(
      "[" +
          [] {
            std::string items;
            for (int i = 0; i < 1000; ++i) items += "'${LONG}${LONG}',";
            return items;
          }() +
          "]",
      "a.yaml", "/base", reader);
  const std::string text(50'000, 'x');
  expand_variables(
      node, [&](const std::string&) { return std::optional(text); }, reader);
  CHECK(messages(reader).find("more than 4000000 bytes") != std::string::npos);
}

TEST_CASE("errors for NUL, tabs and text that is not UTF-8 have their location") {
  CHECK(parse_error("a: 1\nb: \"x\xff\"\n") == "a.yaml:2:6: the byte 0xff is not UTF-8; save the text as UTF-8");
  CHECK(parse_error("a: \xc0\xaf\n") == "a.yaml:1:4: the byte 0xc0 is not UTF-8; save the text as UTF-8");
  CHECK(parse_error("a: \xed\xa0\x80\n") == "a.yaml:1:4: the byte 0xed is not UTF-8; save the text as UTF-8");
  CHECK(parse_error("a: \xe2\x82\n") == "a.yaml:1:4: the byte 0xe2 is not UTF-8; save the text as UTF-8");
  CHECK(parse_error("a: \"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\"\n").empty());
  CHECK(parse_error(std::string("a: x\0y\n", 8)) == "a.yaml:1:5: there is a NUL byte: this is not a text in UTF-8");
  CHECK(parse_error("a: \"x\\0y\"\n") == "a.yaml:1:4: a text must not contain a NUL character");
  CHECK(parse_error("train:\n\tepochs: 5\n\tloss: x\n").find("is indented by a tab: YAML requires spaces") !=
        std::string::npos);
  CHECK(parse_error("train:\n  epochs: 5\n\tloss: x\n").find("line 3 is indented by a tab") != std::string::npos);
  CHECK(set_error("a: 1", "a=\xff") == "--set a: byte 3 of the setting is not UTF-8");
  Reader reader;
  Node node = parse_yaml("a: ${BAD}\n", "a.yaml", "/base", reader);
  expand_variables(
      node, [](const std::string&) { return std::optional<std::string>("\xff"); }, reader);
  CHECK(messages(reader) == "a.yaml:1:4: the value of a variable in it is not UTF-8");
}

TEST_CASE("files that are not text are refused, and a read error is not an empty config") {
  const Folder folder;
  REQUIRE(mkfifo("pipe", 0600) == 0);
  folder.write("a.yaml", "include: pipe\n");
  CHECK(load_error("a.yaml") == "a.yaml:1:10: included file 'pipe' is not a regular file");
  folder.write("b.yaml", "include: /dev/zero\n");
  CHECK(load_error("b.yaml") == "b.yaml:1:10: included file '/dev/zero' is not a regular file");
  CHECK(load_error("/dev/zero") == "/dev/zero: the config is larger than 4 MB");
  CHECK(load_error("/proc/self/mem") == "/proc/self/mem: the config cannot be read: Input/output error");
  folder.write("c.yaml", "include: .\n");
  CHECK(load_error("c.yaml").ends_with("is a folder"));
  std::thread writer([] { std::ofstream("pipe") << "a: [1, 2]\n"; });
  Reader reader;
  ConfigFiles files;
  CHECK(flow_text(load_yaml("pipe", variables, reader, files)) == "{a: [1, 2]}");
  writer.join();
  CHECK(flow_text(load_yaml("pipe", variables, reader, files)) == "{a: [1, 2]}");  // the pipe is read only once
  CHECK(reader.ok());
}

TEST_CASE("a pipe is read until its writers close it") {
  const Folder folder;
  REQUIRE(mkfifo("pipe", 0600) == 0);
  CHECK(load_error("pipe") ==
        "pipe: the config is a pipe to which no process has written within 5 s; write the config to a file");
  std::thread writer([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::ofstream pipe("pipe");
    pipe << "a: 1\n" << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    pipe << "b: 2\n";
  });
  Reader reader;
  CHECK(flow_text(load_yaml("pipe", variables, reader)) == "{a: 1, b: 2}");
  writer.join();
  std::thread silent([] { std::ofstream("pipe").flush(); });
  CHECK(load_yaml("pipe", variables, reader).is_null());
  silent.join();
}

TEST_CASE("the files of a config are passed to other processes as one text") {
  const Folder folder;
  folder.write("main.yaml", "include: parts/base.yaml\ndata: {path: images}\n");
  folder.write("parts/base.yaml", "name: \"a \\\"b\\\" \xc3\xa9\"\nmodel: {preset: net.yaml}\n");
  folder.write("parts/net.yaml",
               "parameters: {n: 3}\nlayers: [{dense: {units: $n}}, {dense: {units: '${WIDTH:-4}'}}]\n");
  const auto load = [](ConfigFiles& files, std::vector<std::string>* seen = nullptr) {
    Reader reader;
    const VariableLookup noting = [seen](const std::string& name) {
      if (seen != nullptr) seen->push_back(name);
      return std::optional<std::string>();
    };
    const Node root = load_yaml("main.yaml", noting, reader, files);
    const PresetLoader load_preset_of = preset_loader(noting, files);
    const Node preset = load_preset_of(*root.find("model")->find("preset"), reader);
    const Node named = load_preset_of(scalar_node("vgg16"), reader);
    CHECK(messages(reader).empty());
    CHECK(named.find("layers") != nullptr);
    return flow_text(root) + flow_text(preset) + root.find("data")->find("path")->base_directory;
  };
  ConfigFiles read;
  std::vector<std::string> variables_seen;
  const std::string before = load(read, &variables_seen);
  CHECK(before.find(folder.path().string()) != std::string::npos);
  CHECK(std::count(variables_seen.begin(), variables_seen.end(), "WIDTH") == 1);  // the variable of the preset
  auto passed = ConfigFiles::unpack(read.pack());
  REQUIRE(passed);
  const fs::path here = fs::current_path();
  for (const char* file : {"main.yaml", "parts/base.yaml", "parts/net.yaml"}) fs::remove(file);
  fs::current_path("/");  // another process may start in another folder
  const std::string after = load(*passed);
  fs::current_path(here);
  CHECK(after == before);
  CHECK_FALSE(ConfigFiles::unpack("{}"));
  CHECK_FALSE(ConfigFiles::unpack("a: 1"));
}

TEST_CASE("a repeated key of an included file is reported") {
  const Folder folder;
  folder.write("a.yaml", "include: b.yaml\ntrain: {epochs: 2}\n");
  folder.write("b.yaml", "seed: 1\nseed: 2\ntrain: {loss: x, loss: y}\n");
  CHECK(load_error("a.yaml") ==
        "b.yaml:2:1: repeated key 'seed' (first at 1:1)\nb.yaml:3:18: repeated key 'loss' (first at 3:9)");
}

TEST_CASE("variables are replaced in values") {
  const Node root =
      parse("a: ${HOME_OF_DATA}/x\nb: x/${NO:-y}\nc: '${NO:-${HOME_OF_DATA}}'\nd: $${NO}\ne: ${EMPTY:-z}\n");
  CHECK(flow_text(root) == "{a: /data/x, b: x/y, c: \"/data\", d: \"$${NO}\", e: z}");
  CHECK(root.find("a")->base_directory == fs::current_path().string());
  CHECK(root.find("b")->base_directory == "/base");
  CHECK(root.find("d")->text == "${NO}");
  CHECK(parse_error("a: 1\nb: ${NO}/x\nc: ${ALSO_NO}\n") ==
        "a.yaml:2:4: variable 'NO' is not defined; define it, or give a default: ${NO:-default}\n"
        "a.yaml:3:4: variable 'ALSO_NO' is not defined; define it, or give a default: ${ALSO_NO:-default}");
  CHECK(parse_error("a: ${NO\n") == "a.yaml:1:4: '${' has no matching '}'; write $${ for a literal '${'");
  CHECK(parse_error("a: ${N O}\n") == "a.yaml:1:4: '${N O}' names no variable; write ${NAME} or ${NAME:-default}");
}

TEST_CASE("a map includes a file and overrides its values") {
  const Folder folder;
  folder.write("main.yaml", "include: parts/base.yaml\ntrain: {epochs: 2}\noptimizer: {name: sgd, momentum: 0.9}\n");
  folder.write("parts/base.yaml",
               "train:\n  epochs: 9\n  loss: mse\noptimizer: {name: adam, beta_1: 0.5}\ndata:\n  include: data.yaml\n");
  folder.write("parts/data.yaml", "path: images\n");
  Reader reader;
  const Node root = load_yaml("main.yaml", variables, reader);
  CHECK(messages(reader).empty());
  CHECK(flow_text(root) ==
        "{train: {epochs: 2, loss: mse}, optimizer: {name: sgd, momentum: 0.9}, data: {path: images}}");
  const Node& path = *root.find("data")->find("path");
  CHECK(path.location == SourceLocation{"parts/data.yaml", 1, 7});
  CHECK(fs::equivalent(path.base_directory, folder.path() / "parts"));
  CHECK(root.find("train")->find("epochs")->location == SourceLocation{"main.yaml", 2, 17});
}

TEST_CASE("errors for includes have their location") {
  const Folder folder;
  folder.write("a.yaml", "include: parts/b.yaml\n");
  folder.write("parts/b.yaml", "x:\n  include: ../a.yaml\n");
  CHECK(load_error("a.yaml") == "parts/b.yaml:2:12: '../a.yaml' includes itself");
  folder.write("c.yaml", "x:\n  include: gone.yaml\n");
  CHECK(load_error("c.yaml") == "c.yaml:2:12: included file 'gone.yaml' cannot be read: No such file or directory");
  folder.write("d.yaml", "include: list.yaml\n");
  folder.write("list.yaml", "- 1\n");
  CHECK(load_error("d.yaml") == "d.yaml:1:10: included file 'list.yaml' must hold a map, not a list");
  folder.write("e.yaml", "include: a\ninclude: b\n");
  CHECK(load_error("e.yaml") == "e.yaml:2:1: repeated key 'include' (first at 1:1)");
  folder.write("f.yaml", "include: bad.yaml\n");
  folder.write("bad.yaml", "x: [\n");
  CHECK(load_error("f.yaml").starts_with("bad.yaml:2:1: not YAML: "));
  CHECK(load_error("none.yaml") == "none.yaml: the config cannot be read: No such file or directory");
  CHECK(load_error("parts") == "parts: the config is a folder");
}

TEST_CASE("settings change the document") {
  const std::string text = "train: {epochs: 5, optimizer: adam}\nmodel: {layers: [flatten, {dense: {units: 3}}]}\n";
  CHECK(flow_text(set("train: {epochs: 5}\n", "train.epochs=6")) == "{train: {epochs: 6}}");
  CHECK(flow_text(*set(text, "train.optimizer.learning_rate=0.1").find("train")) ==
        "{epochs: 5, optimizer: {name: adam, learning_rate: 0.1}}");
  CHECK(flow_text(*set(text, "model.layers.1.dense.units=5").find("model")) ==
        "{layers: [flatten, {dense: {units: 5}}]}");
  CHECK(flow_text(*set(text, "model.layers.0.flatten.name=f").find("model")) ==
        "{layers: [{flatten: {name: f}}, {dense: {units: 3}}]}");
  CHECK(flow_text(set("{}", "data.shape=[28, 28, 1]")) == "{data: {shape: [28, 28, 1]}}");
  CHECK(flow_text(set("", "name=x")) == "{name: x}");
  CHECK(flow_text(set("a: 1", "a=x=y")) == "{a: x=y}");
  CHECK(flow_text(set("a: 1", "a=${HOME_OF_DATA}/x")) == "{a: /data/x}");
  const Node changed = set(text, "data.path=images");
  CHECK(changed.find("data")->find("path")->location == SourceLocation{"--set data.path", 0, 0});
  CHECK(changed.find("data")->find("path")->base_directory == fs::current_path().string());
  // Each value of a list has a location of its own, so that an error of one does not hide those of the others.
  const Node list = *set(text, "model.layers=[flatten, {dense: {units: x}}]").find("model")->find("layers");
  CHECK(list.items[0].location.file == "--set model.layers.0");
  CHECK(list.items[1].find("dense")->find("units")->location.file == "--set model.layers.1.dense.units");
}

TEST_CASE("errors for settings name the setting") {
  CHECK(set_error("a: 1", "a") == "--set a: expected PATH=VALUE, for example train.epochs=5");
  CHECK(set_error("a: 1", "a..b=1") == "--set a..b: the path has an empty part; write it as train.epochs");
  CHECK(set_error("a: [1, 2]", "a.2=1") ==
        "--set a.2: '2' is not an item of this list: it has items 0 to 1 (list at a.yaml:1:4)");
  CHECK(set_error("a: [1, 2]", "a.x=1") ==
        "--set a.x: 'x' is not an item of this list: it has items 0 to 1 (list at a.yaml:1:4)");
  CHECK(set_error("a: 1", "a=[1").starts_with("--set a: not YAML: "));
  CHECK(set_error("a: 1", "a=${NO}") ==
        "--set a: variable 'NO' is not defined; define it, or give a default: ${NO:-default}");
}

TEST_CASE("written documents parse to the same document") {
  const std::vector<std::string> texts = {
      "a: 1\nb: {c: [1, 2, {d: 'x y'}], e: {}}\nf: []\n",
      "text: \"line\\nbreak, 'quotes' and \\\"double\\\" \\t\"\nempty: ''\nword: 'null'\ncolon: 'a: b'\nhash: 'a #b'\n",
      "literal: $${HOME}\n'odd: key': x\n'': y\n\"tab\\tkey\": z\n",
      "minus: '-'\nlist: '- x'\nstar: '*x'\npercent: '%x'\nnumber: -5\nfraction: 1/255\ntilde: '~'\nspace: ' x '\n",
      "- a\n- [b, [c]]\n",
      "word\n",
      "{}\n"};
  for (const std::string& text : texts) {
    const Node node = parse(text);
    CHECK(differences(node, parse(to_yaml(node))) == std::vector<std::string>{});
  }
}

TEST_CASE("long documents are written in readable blocks") {
  Node root = parse("name: x\ntrain: {epochs: 5, metrics: [accuracy]}\nmodel: {layers: [flatten]}\n");
  Node& layers = root.entries[2].value.entries[0].value;
  for (int i = 0; i < 3; ++i)
    layers.items.push_back(parse("{dense: {name: layer, units: 128, activation: relu, use_bias: true}}"));
  const std::string dense = "    - {dense: {name: layer, units: 128, activation: relu, use_bias: true}}\n";
  CHECK(to_yaml(root) == "name: x\ntrain:\n  epochs: 5\n  metrics: [accuracy]\nmodel:\n  layers:\n    - flatten\n" +
                             dense + dense + dense);
  CHECK(differences(root, parse(to_yaml(root))).empty());
}

TEST_CASE("differences name the path") {
  CHECK(differences(parse("a: {b: 1, c: [1, 2]}"), parse("a: {b: 2, c: [1, 3], d: x}")) ==
        std::vector<std::string>{"a.b: 1 before, 2 now", "a.c.1: 2 before, 3 now", "a.d: absent before, x now"});
}

}  // namespace trainctl::yaml_test
