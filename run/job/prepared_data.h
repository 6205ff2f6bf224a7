// Prepares the data of a run before ranks are started.
#pragma once

namespace trainctl {

struct DataOptions;

// Makes the files of the user's cache that the data needs, with a progress bar for each. A rank calls this before it
// waits for the others, so that the preparation counts towards no time limit of theirs; one process of a host makes a
// file, and the others wait for it. Throws the errors of prepare_data().
void prepare_data_with_progress(const DataOptions& options);

}  // namespace trainctl
