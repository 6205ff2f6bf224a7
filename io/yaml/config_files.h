// The files that a config consists of: the config itself, what it includes, and its presets.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace trainctl {

// The texts of a config's files, each read once. A process that starts others on the same config gives them these
// texts: they work on what that process has read, also on a host where the files are missing or differ.
class ConfigFiles {
 public:
  ConfigFiles();  // none is read yet; relative paths begin in the working directory of this process

  // A config whose text is known, and is in no file yet.
  static ConfigFiles of(const std::string& file, std::string text);

  // The folder in which relative paths of files, settings and variables begin.
  const std::string& directory() const { return directory_; }
  // A path as an absolute and normal one.
  std::string absolute(const std::string& path) const;

  // The text under a name, null where none is known. The name of a file is its absolute path; under the name of a
  // preset that comes with trainctl stands the path of its file.
  const std::string* find(const std::string& name) const;
  void add(const std::string& name, std::string text) { texts_.insert_or_assign(name, std::move(text)); }

  // All of this as one text, and back; nothing where it is none.
  std::string pack() const;
  static std::optional<ConfigFiles> unpack(const std::string& packed);

 private:
  std::string directory_;
  std::map<std::string, std::string> texts_;
};

}  // namespace trainctl
