// Finds WAV files, and counts sound files of other formats.
#include "io/datasets/audio/audio_files.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {
namespace {

std::string lower_ending(const std::string& name) {
  std::string ending = name.substr(without_ending(name).size());
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

bool is_other_sound(const std::string& ending) {
  constexpr const char* endings[] = {".mp3", ".flac", ".ogg", ".opus", ".m4a", ".aac", ".aiff", ".aif", ".wma"};
  return std::find(std::begin(endings), std::end(endings), ending) != std::end(endings);
}

void add_sounds(const std::string& folder, const std::string& below, std::vector<std::string>& files,
                std::int64_t& others) {
  for (const FolderEntry& entry : list_folder(folder)) {
    if (is_system_name(entry.name)) continue;
    const std::string ending = lower_ending(entry.name);
    if (entry.type == FileType::folder) {
      add_sounds(folder + "/" + entry.name, below + entry.name + "/", files, others);
    } else if (ending == ".wav" || ending == ".wave") {
      files.push_back(below + entry.name);
    } else if (is_other_sound(ending)) {
      ++others;
    }
  }
}

}  // namespace

FileListing list_sounds(const std::string& folder) {
  FileListing listing;
  std::int64_t others = 0;
  add_sounds(folder, "", listing.files, others);
  std::sort(listing.files.begin(), listing.files.end());
  if (others > 0) {
    listing.left_out =
        format("{} sound {} not read; only WAV files are", others, others == 1 ? "file is" : "files are");
  }
  if (listing.files.empty()) {
    data_error(folder, "has no WAV files" + (others > 0 ? ": " + listing.left_out : ""),
               others > 0 ? "convert them: ffmpeg -i IN OUT.wav" : "remove the folder, or put WAV files into it");
  }
  return listing;
}

}  // namespace trainctl
