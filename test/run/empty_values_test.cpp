// Tests the errors of all options that have no value, such as `from:`.
#include <set>

#include "run/run_spec.h"
#include "test/catch.h"

namespace trainctl::empty_values_test {
namespace {

// Reads an empty value into each key of the section and of the choices that it refers to.
class EmptyValues {
 public:
  void check(const Section& section, void* object) {
    for (const Key& key : section.keys) {
      if (key.rest) continue;
      if (key.type.kind == TypeInfo::Kind::choice || key.type.kind == TypeInfo::Kind::choices) visit(key.type.table());
      if (!key.flatten) check(section, key, object);
    }
  }

  int checked() const { return checked_; }

 private:
  void visit(const ChoiceTable& table) {
    if (!visited_.insert(&table).second) return;
    for (const Section& choice : table.choices) {
      const auto options = choice.make();
      check(choice, dynamic_cast<void*>(options.get()));
    }
  }

  // A section without values has its defaults; the meaning of any other empty value is not known here.
  void check(const Section& section, const Key& key, void* object) {
    if (key.type.kind == TypeInfo::Kind::section || key.type.kind == TypeInfo::Kind::any) return;
    CAPTURE(section.name, key.name);
    Node empty;
    empty.location = {"c.yaml", 7, 3};
    Reader reader;
    {
      const ReadingContext context(reader, key.name);
      CHECK_FALSE(key.read(empty, reader, object));
    }
    REQUIRE(reader.count() == 1);
    const Diagnostic& error = reader.diagnostics()[0];
    CHECK(error.location == empty.location);
    CHECK_THAT(error.message, Catch::StartsWith(key.name + " must be "));
    CHECK_THAT(error.message, Catch::EndsWith(", not nothing") || Catch::EndsWith(", not nothing; write none"));
    // One value is as good as a list for keys that accept both.
    if (key.type.single_item_allowed) CHECK(error.message.find(" must be a list") == std::string::npos);
    ++checked_;
  }

  std::set<const ChoiceTable*> visited_;
  int checked_ = 0;
};

template <class T>
int checked_keys() {
  T options;
  EmptyValues values;
  values.check(section_of<T>(), &options);
  return values.checked();
}

}  // namespace

TEST_CASE("an option without a value is one error that says what it must be") {
  CHECK(checked_keys<DataOptions>() > 100);
  CHECK(checked_keys<ModelOptions>() > 200);
  CHECK(checked_keys<TrainOptions>() > 100);
  CHECK(checked_keys<StrategyOptions>() > 10);
  CHECK(checked_keys<CheckpointOptions>() > 5);
  CHECK(checked_keys<ClusterOptions>() > 5);
  CHECK(checked_keys<LogOptions>() > 5);
  CHECK(checked_keys<RunSpec>() > 20);
}

}  // namespace trainctl::empty_values_test
