// Finds sound files in folders.
#pragma once

#include <string>

#include "io/datasets/labelled_files.h"

namespace trainctl {

// Whether a file's name is that of a WAV file.
bool is_wav_name(const std::string& name);

// The WAV files in a folder and its subfolders; links to folders are not followed, and hidden files are left out.
// Throws Error{data} if there are none.
FileListing list_sounds(const std::string& folder);

}  // namespace trainctl
