// A source whose every batch is the first one of another source: steps that never wait for data.
#pragma once

#include "core/exec/interfaces/forwarded_source.h"

namespace trainctl {

class RepeatedBatch final : public ForwardedSource {
 public:
  // Takes one batch of the source, which outlives the object and is not used otherwise.
  explicit RepeatedBatch(BatchSource& source) : ForwardedSource(source), batch_(source.next()) {
    batch_.waited_seconds = 0;
  }

  const Batch& next() override { return batch_; }

 private:
  Batch batch_;
};

}  // namespace trainctl
