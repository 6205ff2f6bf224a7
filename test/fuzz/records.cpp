// Reads archives, records and tables as data sets.
#include <algorithm>
#include <vector>

#include "io/datasets/records/tar.h"
#include "io/datasets/records/tfrecord.h"
#include "io/datasets/records/webdataset.h"
#include "io/datasets/tables/csv.h"
#include "test/fuzz/targets.h"
#include "test/support/records.h"

namespace trainctl::fuzz {
namespace {

// Reads the first samples of a data set, with their targets and weights.
void read_samples(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  expect(dataset.size() > 0, "a data set without samples was opened");
  std::vector<std::int32_t> labels(static_cast<std::size_t>(info.target.count()));
  std::vector<float> weights(static_cast<std::size_t>(info.weight.count()));
  Sample sample;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(4, dataset.size()); ++i) {
    dataset.read(i, sample);
    if (info.classes > 0) {
      dataset.read_labels(i, labels.data());
      for (const std::int32_t label : labels) expect(label < info.classes, "a label is no class");
    }
    dataset.read_weights(i, weights.data());
    dataset.name_of(i);
  }
}

}  // namespace

void fuzz_tar(std::string_view bytes) {
  const std::string path = file_of(bytes, "x.tar");
  for_each_member(path, [&](Cursor& cursor, const TarMember& member) {
    expect(member.offset + member.size <= cursor.size(), "a member is not in its archive");
    cursor.seek(member.offset + member.size);
  });
}

void fuzz_webdataset(std::string_view bytes) { read_samples(*webdataset(file_of(bytes, "x.tar"), {}, {})); }

void fuzz_tfrecord(std::string_view bytes) { read_samples(*tfrecord_dataset(file_of(bytes, "x.tfrecord"), {}, {})); }

// The bytes are the data of a record: a fuzzer cannot guess checksums.
void fuzz_tf_example(std::string_view bytes) {
  const std::string record = test::tf_record(std::string(bytes));
  const std::string path = file_of(record + record, "x.tfrecord");
  read_samples(*tfrecord_dataset(path, {.features = {"n", "x"}}, {}));
}

// The number of bytes decides on the options.
void fuzz_csv(std::string_view bytes) {
  CsvFormat format;
  if (bytes.size() % 3 == 1) format.header = {false};
  if (bytes.size() % 3 == 2) {
    format.missing = MissingRule::mean;
    format.standardize = true;
  }
  read_samples(*csv_dataset({file_of(bytes, "x.csv")}, format, {}));
}

}  // namespace trainctl::fuzz
