// Compares the files and the samples of held-out splits with those of the training split.
#include "io/loader/splits/repeated_samples.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "io/loader/options.h"

namespace trainctl {
namespace {

using FileId = std::pair<dev_t, ino_t>;

// What identifies a file or folder under any of its names; nullopt if there is none.
std::optional<FileId> id_of(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// Files that hold the same samples: one file, or for several inputs the files of all of them.
struct SampleFiles {
  std::vector<FileId> ids;  // in ascending order
  std::string first;        // the path of one of them
};

std::vector<SampleFiles> files_of(const DataOptions& options, const DataLocations& where) {
  std::vector<SampleFiles> found;
  const auto add = [&](const std::vector<std::string>& paths) {
    SampleFiles files{{}, paths[0]};
    for (const std::string& path : paths) {
      const auto id = id_of(path);
      if (!id) return;
      files.ids.push_back(*id);
    }
    std::ranges::sort(files.ids);
    found.push_back(std::move(files));
  };
  for (const DataLocation& piece : where.pieces()) {
    const std::vector<std::string> own = options.dataset.as<DatasetOptions>().files_of(piece);
    if (piece.x.entries.size() > 1 && !own.empty()) {
      add(own);
    } else {
      for (const std::string& path : own) add({path});
    }
  }
  return found;
}

// The first file of a held-out split whose samples the training split reads, too; "" if there is none. With several
// inputs, the files of all of them must be the same: samples of different images may share a file of another input.
std::string repeated_file(const DataOptions& options, const DataLocations& held_out) {
  std::set<std::vector<FileId>> trained_on;
  for (const SampleFiles& files : files_of(options, options.dataset.as<DatasetOptions>())) trained_on.insert(files.ids);
  for (const SampleFiles& files : files_of(options, held_out)) {
    if (trained_on.contains(files.ids)) return files.first;
  }
  return "";
}

bool same_samples(const DatasetGroup& one, const DatasetGroup& other) {
  return std::ranges::equal(one.inputs, other.inputs, [](const auto& a, const auto& b) {
    return !a->info().fingerprint.empty() && a->info().fingerprint == b->info().fingerprint;
  });
}

// The held-out splits that have a location of their own.
std::vector<std::pair<SplitKind, const DataLocations*>> held_out(const DataOptions& options) {
  std::vector<std::pair<SplitKind, const DataLocations*>> found;
  if (options.validation && !options.validation->split) found.emplace_back(SplitKind::validation, &*options.validation);
  if (options.test) found.emplace_back(SplitKind::test, &*options.test);
  return found;
}

std::string warning_for(SplitKind split, const std::string& what) {
  const bool validates = split == SplitKind::validation;
  return format(
      "the {} split {}, so that its metrics do not tell how the network does on samples that it was not trained on: "
      "{}",
      validates ? "validation" : "test", what,
      validates ? "name samples of its own, or hold out training samples with `validation: {split: 0.1}`"
                : "name samples of its own");
}

}  // namespace

std::vector<std::string> repeated_samples(const DataOptions& options, const OpenedSplits& splits) {
  std::vector<std::string> warnings;
  for (const auto& [split, where] : held_out(options)) {
    const std::string file = repeated_file(options, *where);
    if (!file.empty()) {
      warnings.push_back(warning_for(split, format("repeats training samples ({})", file)));
    } else if (same_samples(splits[static_cast<std::size_t>(split)]->group, splits[0]->group)) {
      warnings.push_back(warning_for(split, "has the same samples as the training split"));
    }
  }
  return warnings;
}

}  // namespace trainctl
