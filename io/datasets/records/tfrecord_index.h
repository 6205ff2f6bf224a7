// Finds records in TFRecord files. A record consists of a length (8 bytes), its checksum, data and their checksum.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/datasets/cursor.h"
#include "io/datasets/records/tf_example.h"

namespace trainctl {

// A function that is called with the data of a record, whose checksum is not verified yet, and its name:
// "train.tfrecord, record 12". It may move the cursor. It returns whether the record is kept.
using VisitRecord = std::function<bool(Cursor& cursor, Span data, const std::string& name)>;

class TfRecordIndex {
 public:
  // Reads the headers of the files in their order and calls visit() for every record. Throws Error{data} if a file is
  // truncated or a length is damaged.
  TfRecordIndex(std::vector<std::string> files, const VisitRecord& visit);

  std::int64_t size() const { return static_cast<std::int64_t>(records_.size()); }
  // The name of a kept record. Names count all records of a file from 0; `number` counts the kept records of all files.
  std::string name_of(std::int64_t number) const;
  // A hash of the lengths and the stored checksums.
  std::uint64_t hash() const { return hash_; }

  // Reads a record's data into `data`, which it resizes. Throws Error{data} if the checksum is wrong.
  void read(std::int64_t number, std::vector<std::byte>& data) const;

 private:
  struct Record {
    std::int64_t offset, number;  // offset of its data in the file; number among all records of the file
    std::uint32_t length, file;
  };

  const Record& record(std::int64_t number) const { return records_[static_cast<std::size_t>(number)]; }
  void add_file(std::uint32_t file, const VisitRecord& visit);

  std::vector<std::string> files_;
  std::vector<Record> records_;
  std::uint64_t hash_ = 0;
};

}  // namespace trainctl
