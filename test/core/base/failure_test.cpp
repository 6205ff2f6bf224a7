// Tests the exit codes, messages and JSON documents for exceptions that end a process.
#include "core/base/failure.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/json.h"
#include "core/base/output.h"
#include "core/base/utf8.h"
#include "test/catch.h"

namespace trainctl::failure_test {
namespace {

template <class Thrown>
Failure failure_from(const Thrown& thrown) {
  return failure_of(std::make_exception_ptr(thrown));
}

// Returns the failure of the exception that `work` throws.
template <class Work>
Failure caught(const Work& work) {
  try {
    work();
  } catch (...) {
    return failure_of(std::current_exception());
  }
  return {};
}

TEST_CASE("errors of files, memory, limits and numbers are never internal errors") {
  const Failure link = caught([] {
    const std::string loop = std::filesystem::temp_directory_path() / "trainctl-failure-test-loop";
    std::filesystem::remove(loop);
    std::filesystem::create_symlink(loop, loop);
    (void)std::filesystem::file_size(loop);
  });
  const std::string loop = std::filesystem::temp_directory_path() / "trainctl-failure-test-loop";
  std::filesystem::remove(loop);
  CHECK(link.exit_code == 3);
  CHECK(link.message.starts_with(loop));
  CHECK(link.errors.at(0).location.file == loop);
  const auto full = std::filesystem::filesystem_error("", "there", std::error_code(ENOSPC, std::generic_category()));
  CHECK(failure_from(full).exit_code == 6);
  CHECK(failure_from(std::bad_alloc()).exit_code == 6);
  CHECK(caught([] { std::vector<int>().resize(std::size_t{1} << 62); }).exit_code == 6);
  CHECK(failure_from(std::system_error(EAGAIN, std::generic_category())).message.starts_with("no more threads"));
  CHECK(failure_from(std::system_error(EAGAIN, std::generic_category())).exit_code == 6);
  CHECK(failure_from(std::system_error(EMFILE, std::generic_category())).exit_code == 6);
  CHECK(caught([] { (void)std::stoll("99999999999999999999"); }).exit_code == 3);
  CHECK(caught([] { (void)std::stoi("x"); }).exit_code == 3);
  CHECK(caught([] { [[maybe_unused]] const Json json = Json::parse("{"); }).exit_code == 3);
  CHECK(caught([] { [[maybe_unused]] const double value = Json().get<double>(); }).exit_code == 3);
  CHECK(failure_from(std::overflow_error("product")).exit_code == 2);
  const std::vector<Failure> all = {link, failure_from(full), failure_from(std::bad_alloc()),
                                    caught([] { [[maybe_unused]] const Json json = Json::parse("{"); })};
  for (const Failure& failure : all) CHECK(failure.message.find("internal") == std::string::npos);
  CHECK(failure_from(std::logic_error("ours")).message == "internal error: ours");
  CHECK(failure_from(1).exit_code == 1);
}

TEST_CASE("failures are written as JSON with the location apart from the message, and read again") {
  const SourceLocation location{"net.yaml", 3, 7};
  const Failure one = failure_from(Error(ErrorKind::data, location, "is wrong", "mend it"));
  CHECK(one.message == "net.yaml:3:7: is wrong; mend it");
  const Json json = Json::parse(failure_json(one));
  CHECK(json == Json({{"ok", false},
                      {"errors",
                       {{{"file", "net.yaml"},
                         {"line", 3},
                         {"column", 7},
                         {"message", "is wrong; mend it"},
                         {"related", nullptr}}}},
                      {"exit_code", 3}}));
  const std::vector<Diagnostic> several = {{location, "one", SourceLocation{}, ""},
                                           {location, "two", {"other.yaml", 1, 2}, "there"}};
  const Failure config = failure_from(ConfigError(several));
  CHECK(config.errors == several);
  CHECK(Json::parse(failure_json(config)).at("errors").at(1).at("related").at("file") == "other.yaml");
  CHECK(read_diagnostics(diagnostics_json(several)) == several);
  CHECK(read_diagnostics("no json").empty());
  CHECK(Json::parse(failure_json({5, "a peer is gone"})).at("errors").at(0).at("message") == "a peer is gone");
}

TEST_CASE("names that are not UTF-8 never make invalid JSON") {
  const std::string name = "runs/\xff\xfe\"\n";
  const Json json = Json::parse(failure_json(failure_from(Error(ErrorKind::data, SourceLocation{name}, name))));
  CHECK(json.at("errors").at(0).at("file") == "runs/\\xff\\xfe\"\n");
  CHECK(valid_utf8(name) == "runs/\\xff\\xfe\"\n");
  CHECK(valid_utf8("größer") == "größer");
}

}  // namespace
}  // namespace trainctl::failure_test
