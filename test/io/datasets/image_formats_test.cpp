// Compares decoded images of every format with the values of Keras' loaders: tf.io.decode_image of TensorFlow 2.21 or,
// for files that it cannot read or reads differently, Pillow 13 (keras.utils.load_img). Gray values are Pillow's
// conversion.
#include <random>

#include "core/base/log.h"
#include "io/datasets/images/image_codec.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/images/image_folder.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/images.h"

namespace trainctl::test::image_formats_test {
namespace {

struct Case {
  const char *name, *file;  // the file's bytes in hexadecimal digits
  std::int64_t height, width;
  const char *rgb, *gray;  // pixels in hexadecimal digits
};

constexpr Case cases[] = {
    {"PNG of 16 bits, interlaced",
     "89504e470d0a1a0a0000000d4948445200000003000000031002000001feddce3d0000004749444154789c013c00c3ff00f1e5a0"
     "06af2600d56a39a70e37001e7c77cad103b82f413ffd8e00e5af940ac693004d9357734746004cd748fadfa1e9a101597ff2d23c"
     "21a6cc0c13a21b00c7db125b0000000049454e44ae426082",
     3, 3, "f1a0afe594c6d5390e4c48dfe9017fd221cc1e77d14d5747b841fd", "bab2635a556967527a"},
    {"gray PNG of 16 bits, interlaced",
     "89504e470d0a1a0a0000000d494844520000000300000003100000000154d406b60000002149444154789c6328fcc0d0a8c5f0ef"
     "e6a9d70c55e90ce70e334c55ecddd4940d0084860aed026065b70000000049454e44ae426082",
     3, 3, "7171717a7a7a8181819595958d8d8d828282fefefececececacaca", "717a81958d82fececa"},
    {"PNG with gamma 1",
     "89504e470d0a1a0a0000000d49484452000000030000000108000000003e8b4b680000000467414d41000186a031e8965f000000"
     "0c49444154789c636048f90f0001cb0164510ed2020000000049454e44ae426082",
     1, 3, "000000646464ffffff", "0064ff"},
    {"PNG with gamma 0.45",
     "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000467414d410000afc837058ae9000000"
     "0f49444154789c63e04a39c1cec109000585014fc10fff210000000049454e44ae426082",
     1, 2, "0a64c8070809", "5408"},
    {"PNG with an sRGB chunk and 16 bits",
     "89504e470d0a1a0a0000000d494844520000000200000001100000000081d9fc15000000017352474200aece1ce9000000046741"
     "4d410000b18f0bfc61050000000d49444154789c6310f8dfc008000443019194bd71d60000000049454e44ae426082",
     1, 2, "101010808080", "1080"},
    {"PNG of 1 bit",
     "89504e470d0a1a0a0000000d4948445200000004000000010100000000d14732600000000a49444154789c6358000000a200a1dc"
     "8db1cc0000000049454e44ae426082",
     1, 4, "ffffff000000ffffff000000", "ff00ff00"},
    {"PNG of 2 bits",
     "89504e470d0a1a0a0000000d494844520000000400000001020000000096e748b00000000a49444154789c63900600001d001c8e"
     "f4f5210000000049454e44ae426082",
     1, 4, "000000555555aaaaaaffffff", "0055aaff"},
    {"PNG of a palette with transparency",
     "89504e470d0a1a0a0000000d49484452000000030000000108030000002c3ee48600000009504c54450a141ec8643200ff008152"
     "3b100000000274524e5300809b2b4e180000000c49444154789c6360606402000008000436e0b0a60000000049454e44ae426082",
     1, 3, "0a141ec8643200ff00", "127c96"},
    {"PNG of 16 bits with transparency",
     "89504e470d0a1a0a0000000d4948445200000002000000011006000000a4b2a3c90000001949444154789c6310f8afd060f08181"
     "e1df7fc686550c0d0c0039e9067805020fca0000000049454e44ae426082",
     1, 2, "102030fe01aa", "1d60"},
    {"gray PNG with transparency",
     "89504e470d0a1a0a0000000d49484452000000020000000108040000005e2bb7010000000d49444154789c6338c120ff1f000462"
     "01e7acff5ddb0000000049454e44ae426082",
     1, 2, "c8c8c81f1f1f", "c81f"},
    {"PNG with a transparent color",
     "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000674524e53000100020003c94babf500"
     "00000f49444154789c636064626661650300003f001621bad4540000000049454e44ae426082",
     1, 2, "010203040506", "0205"},
    {"WebP, lossless",
     "5249464644000000574542505650384c380000002f024000002f40244002bef57f3279834cdaa6d4bfb6fad93532018ba193feb5"
     "5ce63fe08f78c4d8a61514b28d00a7760fc1b95c44ff63bc",
     2, 3, "ff000000ff000000ffc86432010203fafbfc", "4c961d7c02fb"},
    {"WebP, lossy",
     "52494646620000005745425056503820560000003002009d012a0300020001402625a802744700648002cdacba8800f97fc4ebbe"
     "2fda377ffc4c577835eb7ff31c723ef5689527bf1ffce63ff632d573b9bffff5a1fff1effb196ab9dcdffbd6a70ab69613d90c00"
     "0000",
     2, 3, "624f0aa5978a201f7d917f3a0c0000f0eeff", "4d9a2a7d04f1"},
    {"WebP with transparency",
     "524946464e000000574542505650384c410000002f024000102fa0a66d03261d54cbff2e13456da4407be25f169678a1260001c6"
     "4aa47f311732699b58ef3bd30b703c6fd96f3a69db81408032566c314444ffe3ac00",
     2, 3, "ff000000ff000000ffc86432010203fafbfc", "4c961d7c02fb"},
    {"WebP, animated",
     "52494646e000000057454250565038580a00000002000000020000010000414e494d06000000000000000000414e4d4656000000"
     "000000000000020000010000000000025650384c3d0000002f024000002fa0a06d1ba69768490dee68a869db80e92454fe7f6929"
     "084000517ffcbfe094f90fe01f64da5eb769030ad9468053bb47e1082ea2ff315e00414e4d465600000000000000000002000001"
     "0000000000005650384c3d0000002f024000002fa0a06d1ba697e8480d6e69a869db80e92454fe7f6929084000517ffcbfe094f9"
     "8fe1dbf8cdbd4c1b080ad9468043f70a1dc145f43fde1100",
     2, 3, "ff000000ff000000ffc86432010203fafbfc", "4c961d7c02fb"},
    {"GIF", "474946383961020002008100000a141ec8643200ff00ff00002c000000000200020000020404437105003b", 2, 2,
     "0a141ec8643200ff00ff0000", "127c964c"},
    {"GIF, animated",
     "47494638376103000200820000fafbfc00ff00c86432010203ff00000000ff0000000000002c0000000003000200000809000904"
     "2820600080800021f90401000006002c000000000300020082fefdfcffff00379bcd00ffffff00ff050403000000000000080900"
     "0710082000408180003b",
     2, 3, "ff000000ff000000ffc86432010203fafbfc", "4c961d7c02fb"},
    {"GIF, interlaced",
     "474946383961010009008100000a141ec8643200ff00ff00002c00000000010009004002080443710443714401003b", 9, 1,
     "0a141ec86432ff000000ff0000ff00ff00000a141e0a141ec86432", "127c4c96964c12127c"},
    {"GIF with a palette of its frame",
     "474946383961020001008100000a141ec8643200ff00ff00002c0000000002000100810102030405060708090a0b0c02020c5500"
     "3b",
     1, 2, "040506070809", "0508"},
    {"GIF with a transparent color",
     "474946383961030001008100000a141ec8643200ff00ff000021f90401000001002c00000000030001000002030cc515003b", 1, 3,
     "c8643200ff00ff0000", "7c964c"},
    {"GIF of a frame smaller than its screen",
     "474946383961030003008101000a141ec8643200ff00ff00002c01000100020002000002040cc53105003b", 3, 3,
     "0a141e0a141e0a141e0a141ec8643200ff000a141eff0000c86432", "121212127c96124c7c"},
    {"GIF of a frame smaller than its screen, transparent",
     "474946383961030002008100000a141ec8643200ff00ff000021f90401000001002c01000100020001000002020c55003b", 2, 3,
     "c86432c86432c86432c86432c8643200ff00", "7c7c7c7c7c96"},
    {"GIF of a frame beyond its screen",
     "474946383961020002008100000a141ec8643200ff00ff00002c01000100020002000002040cc53105003b", 3, 3,
     "0a141e0a141e0a141e0a141ec8643200ff000a141eff0000c86432", "121212127c96124c7c"},
    {"BMP of 24 bits",
     "424d4e0000000000000036000000280000000300000002000000010018000000000018000000c40e0000c40e0000000000000000"
     "00003264c8030201fcfbfa0000000000ff00ff00ff0000000000",
     2, 3, "ff000000ff000000ffc86432010203fafbfc", "4c961d7c02fb"},
    {"BMP of 32 bits",
     "424d4e0000000000000036000000280000000300000002000000010020000000000018000000c40e0000c40e0000000000000000"
     "00003264c8ff030201fffcfbfaff0000ffff00ff00ffff0000ff",
     2, 3, "ff000000ff000000ffc86432010203fafbfc", "4c961d7c02fb"},
    {"BMP of 1 bit",
     "424d46000000000000003e000000280000000300000002000000010001000000000008000000c40e0000c40e0000020000000200"
     "000000000000ffffff00a000000040000000",
     2, 3, "000000ffffff000000ffffff000000ffffff", "00ff00ff00ff"},
    {"BMP of a palette of 8 bits",
     "424d4e00000000000000460000002800000003000000020000000100080000000000080000000000000000000000040000000000"
     "00001e140a003264c80000ff00000000ff000001020003020100",
     2, 3, "ff000000ff00c864320a141ec8643200ff00", "4c967c127c96"},
    {"BMP from the top",
     "424d4600000000000000360000002800000002000000feffffff0100180000000000100000000000000000000000000000000000"
     "000001020304050600000708090a0b0c0000",
     2, 2, "0302010605040908070c0b0a", "0205080b"},
    {"BMP of 16 bits",
     "424d3a00000000000000360000002800000002000000010000000100100000000000040000000000000000000000000000000000"
     "00001f7c5b2a",
     1, 2, "ff00ff5294de", "6989"},
    {"BMP of 16 bits by masks",
     "424d4600000000000000420000002800000002000000010000000100100003000000040000000000000000000000000000000000"
     "000000f80000e00700001f0000001ff85b2a",
     1, 2, "ff00ff2948de", "6950"},
    {"BMP of 32 bits by masks",
     "424d4600000000000000420000002800000001000000010000000100200003000000040000000000000000000000000000000000"
     "0000000000ff0000ff0000ff000001020304",
     1, 1, "040302", "03"},
    {"BMP of 4 bits",
     "424d4e00000000000000460000002800000005000000020000000100040000000000080000000000000000000000040000000000"
     "00001e140a003264c80000ff00000000ff000123100032103000",
     2, 5, "ff000000ff00c864320a141eff00000a141ec8643200ff00ff0000c86432", "4c967c124c127c964c7c"},
    {"BMP of runs of 8 bits",
     "424d5a00000000000000460000002800000004000000030000000100080001000000140000000000000000000000040000000000"
     "00001e140a003264c80000ff00000000ff000201020200000003010203000000010300000001",
     3, 4, "ff00000a141e0a141e0a141ec8643200ff00ff00000a141ec86432c8643200ff0000ff00", "4c1212127c964c127c7c9696"},
    {"BMP of runs with a step",
     "424d54000000000000004600000028000000040000000300000001000800010000000e0000000000000000000000040000000000"
     "00001e140a003264c80000ff00000000ff000201000201010103000004020001",
     3, 4, "00ff0000ff0000ff0000ff000a141e0a141e0a141eff0000c86432c864320a141e0a141e", "969696961212124c7c7c1212"},
    {"BMP of runs of 4 bits",
     "424d52000000000000004600000028000000050000000200000001000400020000000c0000000000000000000000040000000000"
     "00001e140a003264c80000ff00000000ff00051200000005301230000001",
     2, 5, "ff00000a141ec8643200ff00ff0000c8643200ff00c8643200ff00c86432", "4c127c964c7c967c967c"},
    {"BMP of OS/2",
     "424d4e000000000000004a0000000c00000003000100010004001e140a3264c800ff000000ff0000000000000000000000000000"
     "0000000000000000000000000000000000000000000001300000",
     1, 3, "0a141ec86432ff0000", "127c4c"},
};

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// Returns the decoded values of a file.
std::string decoded(const std::string& file, std::int64_t channels, Sample& sample) {
  decode_sample(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), channels, "file", sample);
  return {static_cast<const char*>(sample.values), static_cast<std::size_t>(sample.shape.count())};
}

std::string error_of(const std::string& file) {
  Sample sample;
  try {
    decoded(file, 3, sample);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("image formats: decoded values equal those of Keras' loaders, in colour and in gray") {
  Sample sample;  // one for all cases, since it reuses its buffers
  for (const Case& one : cases) {
    INFO(one.name);
    const std::string file = bytes_of_hex(one.file);
    CHECK(decoded(file, 3, sample) == bytes_of_hex(one.rgb));
    CHECK(sample.shape == Shape{one.height, one.width, 3});
    CHECK(decoded(file, 1, sample) == bytes_of_hex(one.gray));
    CHECK(sample.shape == Shape{one.height, one.width, 1});
    CHECK(sample.whole == sample.shape);
  }
}

TEST_CASE("image formats: a colour has the same gray in PNG, BMP and JPEG") {
  // Colours and their gray by Pillow 13.
  const std::pair<std::array<int, 3>, int> colors[] = {
      {{255, 0, 0}, 76}, {{0, 255, 0}, 150}, {{0, 0, 255}, 29}, {{200, 100, 50}, 124}, {{224, 172, 105}, 180}};
  Sample sample;
  for (const auto& [color, gray] : colors) {
    std::string pixels;
    for (int i = 0; i < 64; ++i) {
      for (const int channel : color) pixels += static_cast<char>(channel);
    }
    const std::string expected(64, static_cast<char>(gray));
    CHECK(decoded(png(8, 8, 2, pixels), 1, sample) == expected);
    CHECK(decoded(jpeg(8, 8, 3, pixels), 1, sample) == expected);
  }
}

TEST_CASE("image formats: truncated files are read or refused, and never crash the decoder") {
  for (const Case& one : cases) {
    const std::string file = bytes_of_hex(one.file);
    for (std::size_t length = 0; length < file.size(); ++length) {
      Sample sample;
      try {
        decoded(file.substr(0, length), 3, sample);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::data);
      }
    }
    INFO(one.name);
    CHECK(error_of(file.substr(0, file.size() / 3)) != "no error");
  }
}

TEST_CASE("image formats: files with changed bytes never crash the decoder") {
  std::mt19937 random(5);
  for (const Case& one : cases) {
    const std::string file = bytes_of_hex(one.file);
    for (int i = 0; i < 400; ++i) {
      std::string changed = file;
      for (unsigned k = 0; k <= random() % 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
      Sample sample;
      try {
        decoded(changed, i % 2 == 0 ? 3 : 1, sample);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::data);
      }
    }
  }
}

TEST_CASE("image formats: sizes that the file cannot hold are refused before memory is allocated") {
  const std::string gif = "GIF89a\xff\xff\xff\xff" + std::string(3, '\0') + "," + std::string(4, '\0') +
                          "\xff\xff\xff\xff" + std::string(1, '\0') + "\2\1\4";
  CHECK_THAT(error_of(gif), Catch::Contains("65535x65535, which is not supported"));
  std::string bmp = "BM" + std::string(8, '\0') + little(54, 4) + little(40, 4) + little(60000, 4) + little(60000, 4) +
                    little(1, 2) + little(24, 2) + std::string(24, '\0');
  CHECK_THAT(error_of(bmp), Catch::Contains("60000x60000, which is not supported"));
  bmp.replace(18, 8, little(30000, 4) + little(2, 4));
  CHECK_THAT(error_of(bmp), Catch::Contains("the file ends too early"));
  bmp.replace(18, 8, little(16000, 4) + little(16000, 4));
  CHECK_THAT(error_of(bmp), Catch::Contains("16000x16000, which its 54 bytes cannot hold"));
  const std::string webp = "RIFF" + little(26, 4) + "WEBPVP8L" + little(13, 4) + "\x2f" +
                           little(16382 | 16382 << 14, 4) + std::string(9, '\0');
  CHECK_THAT(error_of(webp), Catch::Contains("16383x16383 in a file of 34 bytes, which is not supported"));
}

TEST_CASE("image formats: bytes between a JPEG's segments are skipped with a warning, damage is an error") {
  const std::string pixels = slope(16, 16, 3), good = jpeg(16, 16, 3, pixels);
  const std::size_t table = good.find("\xff\xdb");
  REQUIRE(table != std::string::npos);
  const std::string odd = good.substr(0, table) + std::string(7, 'x') + good.substr(table);
  Sample sample;
  const std::string expected = decoded(good, 3, sample);
  CHECK(sample.warning.empty());
  CHECK(decoded(odd, 3, sample) == expected);
  CHECK_THAT(sample.warning, Catch::Contains("7 extraneous bytes before marker 0xdb"));
  decoded(good, 3, sample);
  CHECK(sample.warning.empty());
  CHECK_THAT(error_of(good.substr(0, good.size() - 40)), Catch::Contains("JPEG"));

  const TempFolder folder;
  write_file(folder / "a/1.jpg", good);
  write_file(folder / "a/2.jpg", odd);
  const Data data(
      data_options(format("{{dataset: image_folder, path: {}, workers: 0, shuffle: false}}", folder.text())), 1);
  const auto source = data.training(2, {}, {1, 0, 0});
  log::add_file(folder / "log.txt", log::Level::warning);
  source->next();
  source->next();
  const std::string text = read_whole(folder / "log.txt");
  CHECK_THAT(text, Catch::Contains("a/2.jpg: ") && Catch::Contains("extraneous bytes"));
  CHECK(text.find("extraneous") == text.rfind("extraneous"));  // once, not in every epoch
  CHECK(text.find("a/1.jpg") == std::string::npos);
}

TEST_CASE("image folders: files are found by extension or content, hidden files are skipped with a warning") {
  const TempFolder folder;
  const std::string image = png(2, 2, 2, random_bytes(12, 1)), photo = jpeg(2, 2, 3, slope(2, 2, 3));
  for (const char* name : {"a/1.jfif", "a/2.JPE", "a/IMG_0001", "a/Mr. Smith 3", "a/2014.05.03"}) {
    write_file(folder / name, photo);
  }
  for (const char* name : {"a/1.png", "b/x.png", "b/twice.bak"}) write_file(folder / name, image);
  for (const char* name : {"a/._1.png", "a/.DS_Store", "b/Thumbs.db", "b/._x.png", "b/.ipynb_checkpoints/x.png",
                           "__MACOSX/a/._1.png", ".git/x.png"}) {
    write_file(folder / name, "Mac OS X");
  }
  write_file(folder / "b/LICENSE", "a text without an ending");
  write_file(folder / "b/notes.txt", "BMW is no image");
  write_file(folder / "b/scan.tif", std::string("II*\0....", 8));
  const auto dataset = image_folder_dataset({folder.text()}, {});
  CHECK(dataset->info().class_names == std::vector<std::string>{"a", "b"});
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < dataset->size(); ++i)
    names.push_back(dataset->name_of(i).substr(folder.text().size() + 1));
  CHECK(names == std::vector<std::string>{"a/1.jfif", "a/1.png", "a/2.JPE", "a/2014.05.03", "a/IMG_0001",
                                          "a/Mr. Smith 3", "b/x.png"});
  Sample sample;
  for (std::int64_t i = 0; i < dataset->size(); ++i) dataset->read(i, sample);
  CHECK_THAT(dataset->info().warning, Catch::Contains("2 images are not read (.bak, .tif)"));
  CHECK_THAT(dataset->info().warning, Catch::Contains("5 files are skipped, which file managers create or which are "
                                                      "hidden (.*, .DS_Store, ._*, Thumbs.db)"));
}

}  // namespace trainctl::test::image_formats_test
