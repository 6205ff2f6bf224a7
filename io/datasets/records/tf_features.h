// The features of a record by name, and the targets of all records.
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

// Where each feature of a record lies; the last one of a name, as protocol buffers read maps.
using FeaturePlaces = std::map<std::string, Span, std::less<>>;

// The places of a record's features. Throws Error{data} where the record is no Example; `name` is the record's.
FeaturePlaces features_of(Cursor& cursor, Span record, const std::string& name);

// A record's feature, of one to `most` values. Throws Error{data} where it is missing, empty, damaged or longer.
TfFeature read_named(Cursor& cursor, const FeaturePlaces& places, const std::string& key, std::int64_t most,
                     const std::string& name);

// The declared key, or the first of the usual ones that a record has. Throws Error{data} where it has none; the remedy
// is to state the option.
std::string choose_feature(const std::optional<std::string>& declared, const std::vector<std::string>& usual,
                           const FeaturePlaces& places, const std::string& option, const std::string& name);

// The targets of all records, in their order.
class TfTargets {
 public:
  // Adds a record's target and, where `weight` names one, its weight. Throws Error{data} where the target holds bytes
  // or is of another kind or length than those before, or the weight is no number of 0 or more.
  void add(Cursor& cursor, const FeaturePlaces& places, const std::string& key,
           const std::optional<std::string>& weight, const std::string& name);
  // Adds a record whose target is not read: class 0, with the record's weight.
  void add_without_target(Cursor& cursor, const FeaturePlaces& places, const std::optional<std::string>& weight,
                          const std::string& name);
  bool empty() const { return records_ == 0; }
  // The data set of the targets, as array_targets() makes it; `path` is for messages. Ends the collection.
  std::shared_ptr<const Dataset> dataset(const std::string& path, const DeclaredInfo& declared);

 private:
  TfFeature::Kind kind_ = TfFeature::Kind::none;
  std::int64_t records_ = 0;
  std::int64_t each_ = 0;  // values of a target; 0: none has been added
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
  std::vector<float> weights_;  // empty where none is named
};

}  // namespace trainctl
