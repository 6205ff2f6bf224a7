// Finds WAV files, and counts sound files of other formats.
#include "io/datasets/audio/audio_files.h"

#include <algorithm>
#include <cstdint>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {
namespace {

std::string lower_ending(const std::string& name) { return lower_case(name.substr(without_ending(name).size())); }

bool is_other_sound(const std::string& ending) {
  constexpr const char* endings[] = {".mp3", ".flac", ".ogg", ".opus", ".m4a", ".aac", ".aiff", ".aif", ".wma"};
  return std::find(std::begin(endings), std::end(endings), ending) != std::end(endings);
}

}  // namespace

bool is_wav_name(const std::string& name) {
  const std::string ending = lower_ending(name);
  return ending == ".wav" || ending == ".wave";
}

FileListing list_sounds(const std::string& folder) {
  FileListing listing;
  std::int64_t others = 0;
  listing.files = files_below(folder, [&others](const std::string& name) {
    if (is_other_sound(lower_ending(name))) ++others;
    return is_wav_name(name);
  });
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
