// The places of records in TFRecord files: each has a length (8 bytes), its check sum, data and their check sum.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/datasets/cursor.h"
#include "io/datasets/records/tf_example.h"

namespace trainctl {

// Called with a record's data, which are not checked yet, and its name: "train.tfrecord, record 12". It may move the
// cursor. Returns whether the record is kept.
using VisitRecord = std::function<bool(Cursor& cursor, Span data, const std::string& name)>;

class TfRecordIndex {
 public:
  // Passes the headers of the files in their order and visits every record. Throws Error{data} where a file is cut off
  // or a length is damaged.
  TfRecordIndex(std::vector<std::string> files, const VisitRecord& visit);

  std::int64_t size() const { return static_cast<std::int64_t>(records_.size()); }
  // The name of a kept record. In names, records are counted from 0 in each file; `number` counts those of all files
  // that are kept.
  std::string name_of(std::int64_t number) const;
  // A hash of the lengths and the stored check sums.
  std::uint64_t hash() const { return hash_; }

  // Reads a record's data into `data`, which it makes as long. Throws Error{data} where the check sum is another.
  void read(std::int64_t number, std::vector<std::byte>& data) const;

 private:
  struct Record {
    std::int64_t offset, number;  // of its data, and among all records of its file
    std::uint32_t length, file;
  };

  const Record& record(std::int64_t number) const { return records_[static_cast<std::size_t>(number)]; }
  void add_file(std::uint32_t file, const VisitRecord& visit);

  std::vector<std::string> files_;
  std::vector<Record> records_;
  std::uint64_t hash_ = 0;
};

}  // namespace trainctl
