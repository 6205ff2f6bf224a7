// Rules of collectives.
#include "core/graph/ops/collectives.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string AllReduce::attributes() const {
  return AttributeText().value("bucket", bucket).word(format("[{},{})", offset, offset + count)).text();
}

std::vector<TensorType> AllReduce::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

std::string WaitBucket::attributes() const { return AttributeText().value("bucket", bucket).text(); }

std::vector<TensorType> WaitBucket::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

}  // namespace trainctl
