// Measurements of one machine: numbers by key, which are kept in a user's cache between plans.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

class Measurements {
 public:
  // Returns the numbers of a key, or null if it was not measured.
  const std::vector<double>* find(std::string_view key) const;
  void record(const std::string& key, std::vector<double> values);
  // Adds the other's measurements, which replace measurements with the same keys.
  void add(const Measurements& other);
  // Adds the other's measurements of keys that are missing here, or have another number of values here, or a last value
  // (the spread) above `widest`. Thus shorter measurements for alternatives do not replace those for the config's own
  // strategy.
  void complete(const Measurements& other, double widest);

  bool empty() const { return values_.empty(); }
  bool operator==(const Measurements&) const = default;

  // Writes a file with a line for each key, "key<tab>numbers", after a line with the checksum.
  std::string file_text() const;
  // Adds the measurements of such a file. If the file is damaged, throws Error{data} and adds no measurement.
  void add_file(std::string_view text);

 private:
  std::map<std::string, std::vector<double>, std::less<>> values_;
};

}  // namespace trainctl
