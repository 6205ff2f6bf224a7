// Compares NIfTI volumes with nibabel's values (test/golden/nifti.py), and tests classes, target values and damaged
// files.
#include "io/datasets/volumes/nifti.h"
#include "io/checkpoint/safetensors.h"
#include "io/datasets/options.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::nifti_test {
namespace {

const std::string golden = TRAINCTL_SOURCE_DIR "/test/golden/nifti/";

std::shared_ptr<const DatasetOptions> options_of(const std::string& options) {
  Reader reader;
  Choice choice;
  const Node node = parse_yaml("{name: nifti" + options + "}", "test.yaml", "", reader);
  REQUIRE(read_choice(dataset_choices(), node, reader, choice));
  return std::dynamic_pointer_cast<const DatasetOptions>(choice.options);
}

std::shared_ptr<const Dataset> open(const std::string& path, const std::string& options = "",
                                    const DeclaredInfo& declared = {}) {
  DataLocation where;
  where.path.text = path;
  return options_of(options)->open(where, SplitKind::training, declared, 1);
}

std::string error_of(const std::string& path, const std::string& options = "") {
  try {
    const auto dataset = open(path, options);
    Sample sample;
    for (std::int64_t i = 0; i < dataset->size(); ++i) dataset->read(i, sample);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "it was read";
}

void says(const std::string& message, const std::string& text) {
  CAPTURE(message);
  CHECK(message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("nifti: volumes of all types, orders and scales have nibabel's values") {
  const SafetensorsFile file(golden + "values.safetensors");
  CHECK(file.header().tensors.size() == 4);
  for (const StoredTensor& tensor : file.header().tensors) {
    CAPTURE(tensor.name);
    const NiftiVolume volume = read_nifti(golden + tensor.name);
    REQUIRE(volume.shape() == tensor.shape);
    std::vector<float> expected(static_cast<std::size_t>(tensor.shape.count())), values(expected.size());
    file.read(tensor, expected.data());
    volume.read(values.data());
    CHECK(values == expected);
  }
}

TEST_CASE("nifti: values begin at byte 352 if the header does not say where") {
  const TempFolder folder;
  std::string bytes = read_whole(golden + "bytes.nii");
  bytes.replace(108, 4, 4, '\0');
  write_file(folder / "x.nii", bytes);
  const NiftiVolume expected = read_nifti(golden + "bytes.nii"), volume = read_nifti(folder / "x.nii");
  REQUIRE(volume.shape() == expected.shape());
  std::vector<float> values(static_cast<std::size_t>(volume.shape().count())), of_original = values;
  volume.read(values.data());
  expected.read(of_original.data());
  CHECK(values == of_original);
}

TEST_CASE("nifti: folders and tables give classes, and a column gives target values") {
  const TempFolder folder;
  const std::string volume = read_whole(golden + "scaled.nii.gz");
  write_file(folder / "ill/a.nii.gz", volume);
  write_file(folder / "ill/notes.txt", "x");
  write_file(folder / "well/deep/b.nii.gz", volume);
  const auto dataset = open(folder.text());
  const DatasetInfo& info = dataset->info();
  CHECK(info.class_names == std::vector<std::string>{"ill", "well"});
  CHECK(info.sample == Shape{5, 4, 3, 1});
  REQUIRE(dataset->size() == 2);
  CHECK(dataset->label(1) == 1);
  CHECK(dataset->name_of(1) == folder / "well/deep/b.nii.gz");

  write_file(folder / "t.csv", "volume,age,label\nill/a.nii.gz,61.5,2\nwell/deep/b.nii.gz,-3e1,0\n");
  CHECK(open(folder / "t.csv")->label(0) == 2);
  const auto ages = open(folder / "t.csv", ", value_column: age");
  CHECK(ages->info().classes == 0);
  CHECK(ages->info().target == Shape{1});
  Sample sample;
  ages->read(1, sample);
  CHECK(*sample.target == -30);
  ages->read(0, sample);
  CHECK(*sample.target == 61.5f);
  CHECK(ages->info().fingerprint != open(folder / "t.csv")->info().fingerprint);
  write_file(folder / "t.csv", "volume,age\nill/a.nii.gz,old\n");
  says(error_of(folder / "t.csv", ", value_column: age"), "line 2: the value 'old' is not a number");
  says(error_of(folder.text(), ", value_column: age"), "is a folder, but `value_column` is a column of a table");

  const auto inputs = options_of("")->open_inputs({folder / "ill", folder / "well/deep/b.nii.gz"}, {.training = &info});
  CHECK(inputs->size() == 2);
  CHECK(inputs->info().target == Shape{0});
}

TEST_CASE("nifti: damaged volumes are refused with what is wrong") {
  const TempFolder folder;
  const auto error = [&](const std::string& bytes) {
    write_file(folder / "a/x.nii", bytes);
    const std::string message = error_of(folder.text());
    says(message, "x.nii: ");
    return message;
  };
  const std::string whole = read_whole(golden + "bytes.nii");
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string changed = whole;
    return changed.replace(at, bytes.size(), bytes);
  };
  says(error(""), "is empty");
  says(error("x"), "is not a NIfTI-1 file: it has 1 byte, and its header needs 348");
  says(error(with(0, "xxxx")), "is not a NIfTI-1 file");
  says(error(with(344, std::string("n+2\0", 4))), "is not a NIfTI-1 file");
  says(error(with(344, std::string("ni1\0", 4))), "is a header whose values are in another file");
  says(error(with(40, std::string("\2\0", 2))), "its header states 2 dimensions");
  says(error(with(44, std::string("\0\0", 2))), "its header states the size 0 of dimension 2");
  says(error(with(44, std::string("\xff\x7f", 2))),
       "its header states 262136 bytes of values from byte 352 on, but the file has only 24 more");
  says(error(with(42, "\xff\x7f\xff\x7f\xff\x7f")), "which is more than is supported");
  says(error(with(70, std::string("\x80\0", 2))), "holds values of the NIfTI type 128, which is not supported");
  says(error(with(108, std::string("\0\0\xc8\x42", 4))), "its header states that the values begin at byte 100");
  says(error(whole.substr(0, whole.size() - 1)), "but the file has only 23 more");
  const std::string compressed = gzip(read_whole(golden + "channels.nii"));
  says(error(compressed.substr(0, compressed.size() - 40)), "x.nii: ");
  says(error(compressed.substr(0, compressed.size() - 5)), "x.nii: ");
  write_file(folder / "a/x.nii", whole);
  write_file(folder / "a/y.nii", read_whole(golden + "channels.nii"));
  says(error_of(folder.text()), "y.nii: is a volume of 4x3x2x3, but the others are of 4x3x2x1");
}

}  // namespace trainctl::test::nifti_test
