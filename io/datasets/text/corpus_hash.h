// The hash of a corpus, by which its token file is found.
#pragma once

#include <string>

#include "io/datasets/text/corpus.h"

namespace trainctl {

// Returns a hash of the content of all files, in their order. The hash is kept in `folder` together with the paths,
// sizes and times of change, and as long as these are the same, the files are not read again. A hash is not kept if a
// file has changed within the last two seconds: another change might leave size and time as they are.
std::string corpus_hash(const Corpus& corpus, const std::string& folder);

}  // namespace trainctl
