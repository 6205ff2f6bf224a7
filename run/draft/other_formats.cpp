// Recognizes tables, arrays, images and sounds in other formats by the endings of their files.
#include "run/draft/other_formats.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

// The type of a file, or of the file that a link names; `absent` if it cannot be read.
FileType file_type_or_absent(const std::string& path) {
  try {
    return file_type(path);
  } catch (const Error&) {
    return FileType::absent;
  }
}

// A format of data that is not read: the ending of its files, what they are, and how they are converted.
struct OtherFormat {
  std::string_view ending, what;
  std::string_view reader = {};  // the function of pandas that reads a table
  std::string_view remedy = {};  // for other data
};

constexpr std::string_view as_png =
    "write the images as PNG or JPEG, with ImageMagick for example: mogrify -format png";
constexpr std::string_view as_wav = "write the sounds as WAV, with ffmpeg for example: ffmpeg -i sound.mp3 sound.wav";
constexpr std::string_view as_arrays =
    "write samples and targets as arrays of NumPy: numpy.savez(\"data.npz\", x=samples, y=targets)";

constexpr std::string_view as_unpacked = "unpack it, and call init with the folder or file that was in it";
constexpr std::string_view as_network = "`trainctl import` makes a config from a network";
constexpr std::string_view as_arrays_or_network =
    "write samples and targets as arrays of NumPy: numpy.savez(\"data.npz\", x=samples, y=targets); if it is a network "
    "of Keras, use `trainctl import`";

constexpr OtherFormat formats[] = {
    {".xlsx", "a table of Excel", "excel"},
    {".xls", "a table of Excel", "excel"},
    {".ods", "a table of OpenDocument", "excel"},
    {".parquet", "a table of Parquet", "parquet"},
    {".feather", "a table of Feather", "feather"},
    {".dta", "a table of Stata", "stata"},
    {".sav", "a table of SPSS", "spss"},
    {".sas7bdat", "a table of SAS", "sas"},
    {".pkl", "an object of Python's pickle format, which can run code", "", as_arrays},
    {".pickle", "an object of Python's pickle format, which can run code", "", as_arrays},
    {".pt", "an object of PyTorch, whose format can run code", "", as_arrays},
    {".mat", "a file of MATLAB", "", as_arrays},
    {".npy", "a single array without targets", "", "put samples and targets into a folder as x.npy and y.npy"},
    {".zip", "an archive", "", as_unpacked},
    {".tar", "an archive", "", as_unpacked},
    {".gz", "an archive", "", as_unpacked},
    {".tgz", "an archive", "", as_unpacked},
    {".7z", "an archive", "", as_unpacked},
    {".rar", "an archive", "", as_unpacked},
    {".keras", "a network of Keras", "", as_network},
    {".h5", "an HDF5 file", "", as_arrays_or_network},
    {".hdf5", "an HDF5 file", "", as_arrays_or_network},
    {".tif", "an image in the format TIFF", "", as_png},
    {".tiff", "an image in the format TIFF", "", as_png},
    {".heic", "an image in the format HEIC", "", as_png},
    {".avif", "an image in the format AVIF", "", as_png},
    {".dcm", "an image in the format DICOM", "", as_png},
    {".mp3", "a sound in the format MP3", "", as_wav},
    {".flac", "a sound in the format FLAC", "", as_wav},
    {".ogg", "a sound in the format Ogg", "", as_wav},
    {".m4a", "a sound in the format M4A", "", as_wav},
};

const OtherFormat* format_of(const std::string& name) {
  const auto found = std::find_if(std::begin(formats), std::end(formats),
                                  [&](const OtherFormat& format) { return has_ending(name, {format.ending}); });
  return found == std::end(formats) ? nullptr : &*found;
}

std::string_view not_read(const OtherFormat& found) { return found.ending == ".npy" ? "" : ", which is not read"; }

[[noreturn]] void refuse(const std::string& path, const OtherFormat& found, const std::string& what) {
  std::string remedy(found.remedy);
  if (!found.reader.empty()) {
    const std::string code =
        format("import pandas, sys; pandas.read_{}(sys.argv[1]).to_csv(sys.argv[2], index=False)", found.reader);
    const std::string copy = fs::path(path).stem().string() + ".csv";
    remedy = format("write it as CSV, with pandas for example: python3 -c {} {} {}", shell_word(code), shell_word(path),
                    shell_word(copy));
  }
  data_error(path, what, remedy);
}

// The files of one kind in a folder.
struct FoundFormat {
  const OtherFormat* format = nullptr;
  std::string first;  // the path of the first file
  std::size_t count = 0;
};

// Counts the files in other formats in a folder and those below it, in the order of their names, which is the same on
// all hosts: of at most `entries` files and folders. Folders that cannot be read are left out, and links to folders.
void count_formats(const std::string& folder, int& entries, std::vector<FoundFormat>& found) {
  std::vector<FolderEntry> listed;
  try {
    listed = list_folder(folder);
  } catch (const Error&) {
    return;
  }
  for (const FolderEntry& entry : listed) {
    if (--entries < 0) return;
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + entry.name;
    if (entry.type == FileType::folder) count_formats(path, entries, found);
    const OtherFormat* format = entry.name.starts_with('.') ? nullptr : format_of(entry.name);
    if (format == nullptr || file_type_or_absent(path) != FileType::regular) continue;
    auto same = std::ranges::find_if(found, [&](const FoundFormat& one) { return one.format->what == format->what; });
    if (same == found.end()) same = found.insert(same, {format, path});
    ++same->count;
  }
}

}  // namespace

void refuse_other_formats(const std::string& path) {
  if (!is_folder(path)) {
    if (const OtherFormat* found = format_of(path))
      refuse(path, *found, format("is {}{}", found->what, not_read(*found)));
    return;
  }
  int entries = 10'000;
  std::vector<FoundFormat> found;
  count_formats(path, entries, found);
  if (found.empty()) return;
  // The format of most files; of several, the one whose first file comes first.
  const FoundFormat& most = *std::ranges::max_element(found, {}, &FoundFormat::count);
  const std::string others = most.count == 1 ? "" : format(", like {} more", counted(most.count - 1, "file"));
  refuse(most.first, *most.format, format("is {}{}{}", most.format->what, not_read(*most.format), others));
}

}  // namespace trainctl
