// Tests presets: published parameter counts, their parameters, and errors with the location of the mistake.
#include <filesystem>
#include <fstream>

#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::presets_test {

TEST_CASE("presets have the published numbers of parameters") {
  CHECK(parameters(build("preset: mlp", {28, 28, 1})) == 235146);  // 784-256-128-10
  CHECK(parameters(build("preset: lenet5", {28, 28, 1})) == 61706);
  CHECK(parameters(build("preset: vgg16", {224, 224, 3})) == 138357544);    // Keras, torchvision
  CHECK(parameters(build("preset: resnet50", {224, 224, 3})) == 25557032);  // torchvision
  CHECK(parameters(build("preset: resnet20", {32, 32, 3})) == 272474);      // He et al., option B
  const Shape image{224, 224, 3};                                           // below: torchvision
  CHECK(parameters(build("preset: vgg19", image)) == 143667240);
  CHECK(parameters(build("preset: resnet18", image)) == 11689512);
  CHECK(parameters(build("preset: resnet101", image)) == 44549160);
  CHECK(parameters(build("preset: wide_resnet50_2", image)) == 68883240);
  CHECK(parameters(build("preset: mobilenet_v2", image)) == 3504872);
  CHECK(parameters(build("preset: densenet121", image)) == 7978856);
  CHECK(parameters(build("preset: efficientnet_b0", image)) == 5288548);
  CHECK(parameters(build("preset: vit_b16", image)) == 86567656);
  CHECK(parameters(build("{preset: vit_b16, with: {layers: 24, heads: 16, width: 1024, mlp: 4096}}", image)) ==
        304326632);  // vit_l_16
  CHECK(parameters(build("preset: convnext_tiny", image)) == 28589128);
  CHECK(parameters(build("{preset: convnext_tiny, with: {depth_3: 27}}", image)) == 50223688);  // convnext_small
  CHECK(parameters(build("preset: vit_s16", image)) == 22050664);                               // below: timm
  CHECK(parameters(build("preset: deit_tiny", image)) == 5717416);
  CHECK(parameters(build("preset: mlp_mixer", image)) == 59880472);
  CHECK(parameters(build("{preset: mlp_mixer, with: {layers: 8, width: 512, patches_mlp: 256, mlp: 2048}}", image)) ==
        18528264);  // mixer_s16_224
  const auto bert = [](const std::string& with, const std::string& until) {
    BuildOptions options;
    options.inputs[0] = {"", {128}, {DType::int32, {}, {}}};
    Reader reader;
    BuiltModel model = build("{preset: bert, with: " + with + ", until: " + until + "}", options, reader);
    reader.throw_if_failed();
    return model;
  };
  const BuiltModel base = bert("{}", "pooler");
  CHECK(parameters(base) == 109482240);  // transformers: bert-base-uncased, all-MiniLM-L6-v2, bert-large-uncased
  CHECK(base.layers.back().output == Shape{768});
  CHECK(parameters(bert("{layers: 6, width: 384, head_size: 32, mlp: 1536}", "pooler")) == 22713216);
  CHECK(parameters(bert("{layers: 24, heads: 16, width: 1024, mlp: 4096}", "pooler")) == 335141888);
  CHECK(bert("{}", "encoder").layers.back().output == Shape{128, 768});
  CHECK(parameters(bert("{classes: 5}", "predictions")) == 109482240 + 769 * 5);
  CHECK(errors("{preset: bert, until: encodr}", {128}) ==
        "m.yaml:1:23: until: the preset has no layer 'encodr'; did you mean 'encoder'?");
  const BuiltModel unet = build("preset: unet", {64, 48, 3});
  CHECK(parameters(unet) == 31031810);  // counted by hand
  CHECK(unet.layers.back().output == Shape{64, 48, 2});
}

TEST_CASE("presets have the published FLOPs and depth") {
  const auto flops = [](const BuiltModel& model) {
    double sum = 0;
    for (const auto& line : model.layers) sum += line.kind == "conv2d" || line.kind == "dense" ? line.flops : 0;
    return sum;
  };
  // torchvision documents 15.47, 19.63, 1.81, 4.09, 7.80 and 11.40 GMAC; He et al. 41 MMAC for ResNet-20 (its
  // projections add 0.5).
  CHECK(flops(build("preset: vgg16", {224, 224, 3})) == Approx(2 * 15.47e9).epsilon(0.002));
  CHECK(flops(build("preset: resnet50", {224, 224, 3})) == Approx(2 * 4.09e9).epsilon(0.002));
  CHECK(flops(build("preset: vgg19", {224, 224, 3})) == Approx(2 * 19.63e9).epsilon(0.002));
  CHECK(flops(build("preset: resnet18", {224, 224, 3})) == Approx(2 * 1.81e9).epsilon(0.005));
  CHECK(flops(build("preset: resnet101", {224, 224, 3})) == Approx(2 * 7.80e9).epsilon(0.002));
  CHECK(flops(build("preset: wide_resnet50_2", {224, 224, 3})) == Approx(2 * 11.40e9).epsilon(0.002));
  CHECK(flops(build("preset: resnet20", {32, 32, 3})) == Approx(2 * 41e6).epsilon(0.02));
  const BuiltModel resnet = build("preset: resnet50", {224, 224, 3});
  CHECK(std::count_if(resnet.layers.begin(), resnet.layers.end(), [](auto& line) { return line.kind == "conv2d"; }) ==
        49 + 4);
}

TEST_CASE("a preset's parameters replace its defaults") {
  CHECK(parameters(build("{preset: mlp, with: {hidden_1: 32, classes: 3}}", {8, 8, 1})) ==
        64 * 32 + 32 + 32 * 128 + 128 + 128 * 3 + 3);
  CHECK(errors("preset: mlpp", {8, 8, 1}) == "m.yaml:1:9: there is no preset 'mlpp'; did you mean 'mlp'?");
  CHECK(
      errors("preset: alexnet", {8, 8, 1}) ==
      "m.yaml:1:9: there is no preset 'alexnet'; there is bert, convnext_tiny, deit_tiny, densenet121, "
      "efficientnet_b0, "
      "gpt2, lenet5, llama, mlp, mlp_mixer, mobilenet_v2, resnet101, resnet18, resnet20, resnet50, unet, vgg16, vgg19, "
      "vit_b16, vit_s16 or wide_resnet50_2, or a path to a file");
  CHECK(errors("preset: nets/none.yaml", {8, 8, 1}) == "m.yaml:1:9: there is no preset file '" TRAINCTL_SOURCE_DIR
                                                       "/nets/none.yaml'");
  CHECK(errors("preset: mlp\nwith: {clases: 5}", {8, 8, 1}) ==
        "m.yaml:2:8: preset 'mlp' has no parameter 'clases'; did you mean 'classes'?");
  CHECK(errors("preset: mlp\nwith: {classes: 0}", {8, 8, 1}) ==
        "m.yaml:2:17: units must be at least 1 and at most 2147483647, not 0");
  CHECK(errors("preset: mlp\nlayers: [flatten]", {8, 8, 1}) ==
        "m.yaml:2:9: layers and preset exclude each other; set only one of them (preset at 1:9)");
  CHECK(errors("{}", {8, 8, 1}) == "m.yaml:1:1: model needs 'layers' or 'preset': the network");
}

TEST_CASE("a preset in a file of the user is read and checked") {
  const auto folder = std::filesystem::temp_directory_path() / "trainctl-preset-test";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "net.yaml").string();
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const auto messages = [&](const std::string& with) { return errors("preset: " + file + "\nwith: " + with, {8}); };

  write("parameters: {units: 4, width: ~}\nlayers:\n  - dense: $units\n  - dense: {units: $width}\n");
  CHECK(parameters(build("preset: " + file + "\nwith: {width: 3}", {8})) == 8 * 4 + 4 + 4 * 3 + 3);
  CHECK(messages("{units: 5}")
            .starts_with("m.yaml:1:9: preset '" + file + "' needs a value for its parameter 'width' under 'with'"));
  write("parameters: {units: 4}\nlayers:\n  - dense: $unit\n");
  CHECK(messages("{}") == file + ":3:12: '$unit' is no parameter of this preset; did you mean 'units'?");
  // A default may be another parameter.
  write("parameters: {units: 4, more: $units}\nlayers:\n  - dense: $units\n  - dense: $more\n");
  for (const auto& [with, units, more] :
       {std::tuple{"{}", 4, 4}, {"{units: 5}", 5, 5}, {"{more: 3}", 4, 3}, {"{units: 6, more: 2}", 6, 2}}) {
    CHECK(parameters(build("preset: " + file + "\nwith: " + with, {8})) == 9 * units + (units + 1) * more);
  }
  write("parameters: {unit: $units, units: $unit}\nlayers:\n  - dense: $unit\n");
  CHECK(messages("{}").starts_with(file + ":1:20: the default '$units' is no parameter of this preset that has"));
  write("layer:\n  - dense: 5\n");
  CHECK(messages("{}") == file + ":1:1: unknown key 'layer' in a preset; did you mean 'layers'?\n" + file +
                              ":1:1: a preset needs 'layers'");
  write("parameters: {units: 4, more: 8}\nproducts: {more: [units, factor]}\nlayers:\n  - dense: $units\n");
  CHECK(messages("{}").starts_with(file +
                                   ":2:18: products: 'more' must be a parameter of this preset that is the product"));
  // Errors of shapes have locations in the preset's file.
  write("layers:\n  - flatten\n  - conv2d: {filters: 2, kernel_size: 3}\n");
  CHECK(messages("{}") ==
        file + ":3:5: conv2d 'conv2d': input 8 is not an image (height, width, channels) (from 'flatten' at 2:5)");
  std::filesystem::remove_all(folder);
}

TEST_CASE("heads of a preset that do not make up its width are reported with both numbers") {
  const auto tokens = [](const std::string& with) { return errors("preset: gpt2\nwith: " + with, {16}); };
  CHECK(tokens("{heads: 16}") ==
        "m.yaml:2:15: preset 'gpt2': width must be heads * head_size, but width is 768 and 16 * 64 is 1024: set "
        "head_size: 48, or width: 1024");
  CHECK(tokens("{layers: 2, heads: 5}") ==
        "m.yaml:2:26: preset 'gpt2': width must be heads * head_size, but width is 768 and 5 * 64 is 320: set heads "
        "that divide 768, or width: 320");
  CHECK(tokens("{width: 770}").starts_with("m.yaml:2:15: preset 'gpt2': width must be heads * head_size, but width"));
  CHECK(tokens("{heads: 16, head_size: 48}").find("width must be") == std::string::npos);
  for (const char* preset : {"vit_b16", "vit_s16", "deit_tiny"}) {
    const std::string found = errors(std::string("preset: ") + preset + "\nwith: {heads: 7}", {224, 224, 3});
    CHECK(found.find("width must be heads * head_size") != std::string::npos);
  }
}

TEST_CASE("repeated keys of a preset are reported") {
  const auto file = std::filesystem::temp_directory_path() / "trainctl-repeated-preset.yaml";
  std::ofstream(file) << "parameters: {units: 3, units: 4}\nlayers:\n  - dense: {units: $units}\nlayers: []\n";
  const std::string found = errors("preset: " + file.string() + "\nwith: {units: 1, units: 2}", {4});
  std::filesystem::remove(file);
  CHECK(found.find(":4:1: repeated key 'layers' (first at 2:1)") != std::string::npos);
  CHECK(found.find(":1:24: repeated key 'units' (first at 1:14)") != std::string::npos);
  CHECK(found.find("m.yaml:2:18: repeated key 'units' (first at 2:8)") != std::string::npos);
}

TEST_CASE("a preset's parameters count as values of the config wherever they are used") {
  const auto file = std::filesystem::temp_directory_path() / "trainctl-large-preset.yaml";
  std::string text = "parameters: {x: 1}\nlayers:\n";
  for (int i = 0; i < 1000; ++i) text += "  - $x\n";
  std::ofstream(file) << text;
  std::string list = "preset: " + file.string() + "\nwith:\n  x: [1";
  for (int i = 0; i < 1000; ++i) list += ", 1";
  const std::string found = errors(list + "]\n", {4});
  std::filesystem::remove(file);
  CHECK(found.find("the config has more than 200000 values") != std::string::npos);
}

}  // namespace trainctl::testing::presets_test
