// A file to which whole records are appended while a run trains, even if the disk is full for a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainctl {

// The file always ends with a whole record, unless the process is killed within a write. Records that cannot be written
// are kept in memory, up to `most_kept` bytes, and written before the next record as soon as this is possible. Further
// records are left out and counted. One warning is logged when writing begins to fail, and one line when it succeeds
// again. No function throws.
class RecordFile {
 public:
  static constexpr std::size_t most_kept = 1 << 20;

  // Takes over the descriptor of a regular file that is open for appending; messages call it `path`.
  RecordFile(std::string path, int descriptor);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void append(std::string_view record);
  // Tries once more to write the records that are kept, and logs a warning with the number of records that are missing.
  void finish();

  // The number of records that are not in the file.
  std::int64_t missing() const { return kept_records_ + left_out_; }

 private:
  int write_kept();
  void note(int error);

  std::string path_;
  int descriptor_;
  std::int64_t size_ = 0;  // bytes of the whole records in the file
  bool torn_ = false;      // whether a part of a record follows them
  std::string kept_;
  std::int64_t kept_records_ = 0;
  std::int64_t left_out_ = 0;
  bool fails_ = false;  // whether the last write has failed
};

}  // namespace trainctl
