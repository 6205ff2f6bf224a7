// Reads the features of a record by name, and collects the targets of all records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/datasets/records/tf_example.h"

namespace trainctl {

// The span of each feature of a record by name. If a name occurs several times, the last one counts, as in protocol
// buffers' maps.
using FeatureSpans = std::map<std::string, Span, std::less<>>;

// Finds the features of the record `name`. Throws Error{data} if the record is not an Example.
FeatureSpans features_of(Cursor& cursor, Span record, const std::string& name);

// Reads the feature `key` of the record `name`. Throws Error{data} if it is missing, empty or damaged, or has more than
// `max_values` values.
TfFeature read_named(Cursor& cursor, const FeatureSpans& spans, const std::string& key, std::int64_t max_values,
                     const std::string& name);

// Returns the declared key or, if there is none, the first of the usual keys that the record `name` has. Throws
// Error{data} if the record has no such feature; the remedy is to set `option`.
std::string choose_feature(const std::optional<std::string>& declared, const std::vector<std::string>& usual,
                           const FeatureSpans& spans, const std::string& option, const std::string& name);

// The targets of all records, in their order.
class TfTargets {
 public:
  // Adds the target `key` of the record `name` and, if `weight` names a feature, the record's weight. Throws
  // Error{data} if the target holds bytes or differs in kind or length from the earlier targets, or if the weight is
  // not a finite number of at least 0.
  void add(Cursor& cursor, const FeatureSpans& spans, const std::string& key, const std::optional<std::string>& weight,
           const std::string& name);
  // Adds a record whose target is not read: class 0, with the record's weight.
  void add_without_target(Cursor& cursor, const FeatureSpans& spans, const std::optional<std::string>& weight,
                          const std::string& name);
  bool empty() const { return records_ == 0; }
  // Makes the data set of the targets with array_targets(); `path` is for messages. No targets can be added afterwards.
  std::shared_ptr<const Dataset> dataset(const std::string& path, const DeclaredInfo& declared);

 private:
  TfFeature::Kind kind_ = TfFeature::Kind::none;
  std::int64_t records_ = 0;
  std::int64_t each_ = 0;  // number of values of a target; 0: no target has been added
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
  std::vector<float> weights_;  // empty if records have no weights
};

}  // namespace trainctl
