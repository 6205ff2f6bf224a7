// Measurements: numbers that were measured on one machine, by what they are of; kept for the user between plans.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

class Measurements {
 public:
  // The numbers of a key; null where it was not measured.
  const std::vector<double>* find(std::string_view key) const;
  void record(const std::string& key, std::vector<double> values);
  // Takes over what the other has, in the place of what this has of it.
  void add(const Measurements& other);
  // Takes over what the other has of keys that this lacks, or has with another number of values or with a last value
  // (the spread) above `widest`. What was measured for the strategy that a config states is thus not replaced by what
  // is measured in less time for its alternatives.
  void complete(const Measurements& other, double widest);

  bool empty() const { return values_.empty(); }
  bool operator==(const Measurements&) const = default;

  // A file with a line for each key, "key<tab>numbers", behind a line with its checksum. add_file() throws Error{data}
  // and adds nothing where anything of it is damaged.
  std::string file_text() const;
  void add_file(std::string_view text);

 private:
  std::map<std::string, std::vector<double>, std::less<>> values_;
};

}  // namespace trainctl
