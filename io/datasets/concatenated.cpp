// Joins data sets: each sample is read from the data set that holds it.
#include "io/datasets/concatenated.h"

#include <algorithm>
#include <map>

#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

using Datasets = std::vector<std::shared_ptr<const Dataset>>;

std::string values_text(const DatasetInfo& info) {
  return info.classes > 0 ? "classes" : counted(info.target.count(), "value");
}

// Throws Error{data} if the samples of `other` differ from those of `first` in shape, type, targets or weights.
void check_alike(const Dataset& other, const Dataset& first, bool any_size) {
  const DatasetInfo &a = first.info(), &b = other.info();
  const auto refuse = [&](const std::string& what, const std::string& have, const std::string& others_have) {
    data_error(other.name_of(0), format("has {} {}, and {} has {}", what, have, first.name_of(0), others_have),
               "all paths of a data set need samples of the same shape and type");
  };
  if (a.sample.rank() != b.sample.rank() || (!any_size && !(a.sample == b.sample))) {
    refuse("shape", to_string(b.sample), to_string(a.sample));
  }
  if (a.dtype != b.dtype) refuse("values of type", std::string(name_of(b.dtype)), std::string(name_of(a.dtype)));
  if ((a.classes > 0) != (b.classes > 0)) refuse("targets that are", values_text(b), values_text(a));
  const bool images = a.masks || a.image_targets;  // of any size
  if (!images && !(a.target == b.target)) refuse("targets of", values_text(b), values_text(a));
  if (!images && !(a.weight == b.weight)) refuse("weights of shape", to_string(b.weight), to_string(a.weight));
  const std::size_t named = std::min(a.class_names.size(), b.class_names.size());
  for (std::size_t c = 0; c < named; ++c) {
    if (a.class_names[c] != b.class_names[c]) {
      refuse(format("for class {} the name", c), b.class_names[c], a.class_names[c]);
    }
  }
}

class Concatenated final : public Dataset {
 public:
  Concatenated(Datasets datasets, bool any_size) : datasets_(std::move(datasets)), info_(datasets_[0]->info()) {
    for (const auto& dataset : datasets_) {
      check_alike(*dataset, *datasets_[0], any_size);
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + dataset->size());
      if (dataset == datasets_[0]) continue;
      const DatasetInfo& info = dataset->info();
      info_.classes = std::max(info_.classes, info.classes);
      if (info_.class_names.empty()) info_.class_names = info.class_names;
      info_.fingerprint += "; " + info.fingerprint;
      if (!info.warning.empty()) info_.warning += (info_.warning.empty() ? "" : "; ") + info.warning;
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return ends_.back(); }
  bool in_memory() const override {
    return std::all_of(datasets_.begin(), datasets_.end(), [](const auto& dataset) { return dataset->in_memory(); });
  }
  void read(std::int64_t index, Sample& sample) const override { holder_of(index).read(index, sample); }
  std::int32_t label(std::int64_t index) const override { return holder_of(index).label(index); }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    holder_of(index).read_labels(index, labels);
  }
  void read_weights(std::int64_t index, float* weights) const override {
    holder_of(index).read_weights(index, weights);
  }
  std::string name_of(std::int64_t index) const override { return holder_of(index).name_of(index); }
  std::string target_name_of(std::int64_t index) const override { return holder_of(index).target_name_of(index); }

 private:
  // Returns the data set that holds a sample, and sets `index` to the sample's number in it.
  const Dataset& holder_of(std::int64_t& index) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    if (end != ends_.begin()) index -= *std::prev(end);
    return *datasets_[static_cast<std::size_t>(end - ends_.begin())];
  }

  Datasets datasets_;
  DatasetInfo info_;
  std::vector<std::int64_t> ends_;  // data set d has the samples [ends_[d - 1], ends_[d])
};

}  // namespace

DatasetGroup concatenated(const std::vector<DatasetGroup>& groups, bool any_size) {
  DatasetGroup joined;
  // The combined data set for each data set of groups[0], which may list a data set several times.
  std::map<const Dataset*, std::shared_ptr<const Dataset>> known;
  const auto join = [&](const auto list) {
    for (std::size_t i = 0; i < (groups[0].*list).size(); ++i) {
      auto& combined = known[(groups[0].*list)[i].get()];
      if (!combined) {
        Datasets datasets;
        for (const DatasetGroup& group : groups) datasets.push_back((group.*list)[i]);
        combined = std::make_shared<Concatenated>(std::move(datasets), any_size);
      }
      (joined.*list).push_back(combined);
    }
  };
  join(&DatasetGroup::inputs);
  join(&DatasetGroup::targets);
  return joined;
}

}  // namespace trainctl
