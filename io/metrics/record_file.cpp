// Appends records, and cuts off a record of which only a part could be written.
#include "io/metrics/record_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/format.h"
#include "core/base/full_disk.h"
#include "core/base/log.h"

namespace trainctl {

RecordFile::RecordFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {
  struct stat status {};
  if (fstat(descriptor_, &status) == 0) size_ = status.st_size;
}

RecordFile::~RecordFile() { close(descriptor_); }

void RecordFile::append(std::string_view record) {
  if (kept_.empty() || kept_.size() + record.size() <= most_kept) {
    kept_ += record;
    ++kept_records_;
  } else {
    ++left_out_;
  }
  note(write_kept());
}

void RecordFile::finish() {
  if (!kept_.empty() || torn_) note(write_kept());
  if (missing() == 0) return;
  log::warning(format("{}: {} missing, because the disk was full", path_,
                      missing() == 1 ? "1 record is" : format("{} records are", missing())));
}

// Writes all kept records or none. Returns 0, or the errno of the call that failed.
int RecordFile::write_kept() {
  if (torn_ && ftruncate(descriptor_, size_) != 0) return errno;
  torn_ = false;
  const int error = write_to_disk(descriptor_, kept_);
  if (error != 0) {
    torn_ = ftruncate(descriptor_, size_) != 0;
    return error;
  }
  size_ += static_cast<std::int64_t>(kept_.size());
  kept_.clear();
  kept_records_ = 0;
  return 0;
}

void RecordFile::note(int error) {
  if ((error != 0) == fails_) return;
  fails_ = error != 0;
  if (fails_) {
    log::warning(
        format("{}: cannot write: {}; training goes on, and the records are kept in memory until they can be "
               "written, at most {} of them",
               path_, std::generic_category().message(error), byte_text(most_kept)));
  } else {
    log::info(format("{} can be written again; {}", path_,
                     left_out_ == 0 ? "no record is missing" : format("{} records are missing", left_out_)));
  }
}

}  // namespace trainctl
