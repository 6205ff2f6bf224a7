// Holds the texts of the files that a config consists of: the config itself, included files, and presets.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace trainctl {

// The texts of a config's files, each read once. A process that starts other processes on the same config passes these
// texts to them. All processes then use the same texts, even on a host on which the files are missing or differ.
class ConfigFiles {
 public:
  ConfigFiles();  // holds no texts; relative paths are relative to the working directory of this process

  // Returns the files of a config whose text is known, and need not be in a file.
  static ConfigFiles of(const std::string& file, std::string text);

  // The folder to which relative paths of files, settings and variables are relative.
  const std::string& directory() const { return directory_; }
  // Returns the absolute and normalized path.
  std::string absolute(const std::string& path) const;

  // Returns the text with this name, null if it is unknown. The name of a file's text is the file's absolute path. For
  // the name of a preset of trainctl the text is the path of the preset's file.
  const std::string* find(const std::string& name) const;
  void add(const std::string& name, std::string text) { texts_.insert_or_assign(name, std::move(text)); }

  // Convert all texts to one text and back; unpack() returns no value if `packed` is not such a text.
  std::string pack() const;
  static std::optional<ConfigFiles> unpack(const std::string& packed);

 private:
  std::string directory_;
  std::map<std::string, std::string> texts_;
};

}  // namespace trainctl
