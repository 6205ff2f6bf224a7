// Tests how ranks start: under the user's own mpirun, and on hosts that are missing what ranks need.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::launch_test {
namespace {

namespace fs = std::filesystem;

// Runs a script in a folder, in which $trainctl is the program and `mpirun` has a time limit.
Finished shell(const Folder& folder, const std::string& script) {
  const std::string file =
      folder.write("script.sh", format(R"(
cd '{0}'
export TMPDIR="${{TMPDIR_OF_RUN:-{0}/temporary}}" XDG_CACHE_HOME='{0}/cache'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p temporary
trainctl='{1}'
mpirun() {{ timeout {3} mpirun --oversubscribe "$@"; }}
{2})",
                                       folder.path().string(), TRAINCTL_BINARY, script, time_limit));
  const int status = std::system(format("bash '{0}' >'{0}.out' 2>'{0}.err' </dev/null", file).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(file + ".out"), read_file(file + ".err")};
}

// A network on 64 synthetic samples of 6 values.
const std::string small = R"(
data: {dataset: synthetic, samples: 64, shape: [6], classes: 3}
model: {layers: [{dense: {units: 8, activation: relu}}, {dense: {units: 3}}]}
)" + train_section("batch_size: 16, epochs: 1, optimizer: {name: sgd, learning_rate: 0.1}");

void expect(const Finished& run, int code, const std::string& words) {
  INFO(tail(run.errors));
  CHECK(run.code == code);
  CHECK(count(run.errors, words) == 1);
  for (const char* noise : {"internal error", "terminate called", "ORTE", "PMIX"}) {
    CHECK_FALSE(contains(run.errors, noise));
  }
}

TEST_CASE("ranks with different configs do not train, and the key, the values and the rank are named once") {
  const Folder folder;
  folder.write("c.yaml", small);
  const auto different = [&](const std::string& command, const std::string& setting, int rank) {
    std::string line = "mpirun";
    for (int each = 0; each < 3; ++each) {
      line +=
          format("{} -n 1 \"$trainctl\" {}{}", each > 0 ? " :" : "", command, each == rank ? " --set " + setting : "");
    }
    return shell(folder, line);
  };
  expect(different("run c.yaml", "train.optimizer.learning_rate=0.2", 1), 2,
         "train.optimizer.learning_rate is 0.1 on rank 0 and 0.2 on rank 1 (");
  CHECK_FALSE(fs::exists(folder / "runs"));
  expect(different("run c.yaml", "train.gradient_accumulation=2", 2), 2,
         "train.gradient_accumulation is 1 on rank 0 and 2 on rank 2 (");
  expect(different("run c.yaml", "train.optimizer=adam", 0), 2,
         "train.optimizer.name is adam on rank 0 and sgd on rank 1 (");
  expect(different("bench step c.yaml --seconds 0.1", "seed=7", 2), 2, "seed is 1 on rank 0 and 7 on rank 2 (");
  expect(different("eval c.yaml", "train.batch_size=8", 1), 2, "train.batch_size is 16 on rank 0 and 8 on rank 1 (");
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("ranks with different builds, commands or options do not train") {
  const Folder folder;
  folder.write("c.yaml", small);
  expect(shell(folder, "mpirun -n 1 \"$trainctl\" run c.yaml : -n 1 \"$trainctl\" run c.yaml --profile 0:2"), 2,
         "--profile is 0:0 on rank 0 and 0:2 on rank 1 (");
  expect(shell(folder, "mpirun -n 1 \"$trainctl\" run c.yaml : -n 1 \"$trainctl\" bench step c.yaml"), 2,
         "the command is run on rank 0 and bench step on rank 1 (");
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("ranks with different data do not train, also if the files have the same names") {
  const Folder folder;
  folder.write("c.yaml", R"(
data: {dataset: image_folder, path: a}
model: {layers: [flatten, {dense: 2}]}
)" + train_section("batch_size: 2, epochs: 1, optimizer: sgd"));
  for (const char* name : {"x/0.png", "x/1.png", "y/0.png", "y/1.png"}) {
    for (const char* part : {"a", "b"}) {
      const bool changed = std::string(part) + name == "by/1.png";
      folder.write(std::string(part) + "/" + name, png(4, 4, 2, std::string(48, changed ? 7 : 6)));
    }
  }
  expect(shell(folder, "mpirun -n 1 \"$trainctl\" run c.yaml : -n 1 \"$trainctl\" run c.yaml --set data.path=b"), 2,
         "the data's fingerprint is ");
}

TEST_CASE("another number of ranks than that of the user's own mpirun is an error, auto is not") {
  const Folder folder;
  folder.write("c.yaml", small);
  expect(shell(folder, "mpirun -n 3 \"$trainctl\" run c.yaml --ranks 2"), 2,
         "2 ranks are asked for, but mpirun has started 3");
  expect(shell(folder, "mpirun -n 1 \"$trainctl\" run c.yaml --set cluster.ranks=2"), 2,
         "2 ranks are asked for, but mpirun has started 1");
  CHECK_FALSE(fs::exists(folder / "runs"));
  CHECK(shell(folder, "mpirun -n 2 \"$trainctl\" run c.yaml --set cluster.ranks=3 --ranks auto").code == 0);
  CHECK(events(folder / "runs/c", "start").at(0).at("ranks") == 2);
}

TEST_CASE("a rank that never starts under the user's own mpirun is reported by a waiting rank, and the job ends") {
  const Folder folder;
  folder.write("c.yaml", small);
  // Before one rank starts trainctl, it hangs as a module or a mount may hang, or it is suspended as by a debugger.
  folder.write("late", R"([ "$OMPI_COMM_WORLD_RANK" != "$LATE" ] || eval "$HANG"
exec "$@"
)");
  for (const auto& [late, hang, others] :
       {std::tuple{0, "sleep 1000", 2}, {1, "sleep 1000", 2}, {2, "kill -STOP $$", 3}, {0, "kill -STOP $$", 3}}) {
    CAPTURE(late, hang);
    const auto begin = std::chrono::steady_clock::now();
    const Finished run =
        shell(folder, format("export LATE={} HANG='{}'; mpirun -n {} sh late \"$trainctl\" run c.yaml --set "
                             "'cluster.start_timeout=3 s'",
                             late, hang, others));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    expect(run, 5, format("rank {} of {} on ", late == 0 ? 1 : 0, others));
    CHECK(count(run.errors, "has waited for 3 s in MPI_Init") == 1);
    CHECK(seconds.count() < 15);
  }
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("a rank may start later than a rank may be silent in a step") {
  const Folder folder;
  folder.write("c.yaml", small);
  folder.write("late", R"([ "$OMPI_COMM_WORLD_RANK" != 1 ] || sleep 4
exec "$@"
)");
  const std::string start = "mpirun -n 2 sh late \"$trainctl\" run c.yaml --set 'cluster.timeout=2 s'";
  CHECK(shell(folder, start).code == 0);
  const Finished limited = shell(folder, start + " --set 'cluster.start_timeout=1 s' --set train.epochs=2");
  expect(limited, 5, "rank 0 of 2 on ");
  CHECK(contains(limited.errors, "has waited for 1 s in MPI_Init"));
}

TEST_CASE("a host that is missing what ranks need to start leads to one error with exit code 6") {
  const Folder folder;
  folder.write("c.yaml", small);
  expect(shell(folder, "ulimit -n 32; exec \"$trainctl\" run c.yaml --ranks 2"), 6, "32 files may be open at once");
  expect(shell(folder, "mkdir gone; cd gone; rmdir ../gone; exec \"$trainctl\" run ../c.yaml --ranks 2"), 6,
         "the working directory");
  const Finished doctor = shell(folder, "mkdir gone; cd gone; rmdir ../gone; exec \"$trainctl\" doctor");
  CHECK(doctor.code == 1);
  CHECK(contains(doctor.out, "the working directory cannot be used"));
  const Finished files = shell(folder, "ulimit -n 32; exec \"$trainctl\" doctor --ranks 2 --device cpu");
  CHECK(files.code == 1);
  CHECK(contains(files.out, "32 files may be open at once"));
  CHECK(contains(files.out, "a run would not start"));
  CHECK_FALSE(fs::exists(folder / "runs"));
}

// Mounts a file system in a namespace of its own, if the test has the permission.
Finished with_mount(const Folder& folder, const std::string& place, const std::string& options,
                    const std::string& command) {
  return shell(folder, format("mkdir -p {0}; exec unshare --mount bash -c \"mount -t tmpfs -o {1} none {0} && {2}\"",
                              place, options, command));
}

TEST_CASE("a full folder for temporary files or shared memory leads to one error with its path and exit code 6") {
  const Folder folder;
  folder.write("c.yaml", small);
  if (with_mount(folder, "mounted", "size=1m", "true").code != 0) {
    WARN("skipped: nothing can be mounted here");
    return;
  }
  const std::string run = "'$trainctl' run c.yaml --ranks 2";
  expect(with_mount(folder, "mounted", "size=1m", "TMPDIR=" + folder / "mounted" + " " + run), 6,
         "/mounted has 1.0 MB left, but 9.5 MB are needed");
  expect(with_mount(folder, "mounted", "size=20m,nr_inodes=20", "TMPDIR=" + folder / "mounted" + " " + run), 6,
         "more files, but 64 are needed");
  CHECK_FALSE(fs::exists(folder / "runs"));
  // Without space in shared memory the ranks share files.
  const Finished shared = with_mount(folder, "/dev/shm", "size=1m", run);
  expect(shared, 0, "the ranks share memory through files in ");
  CHECK(contains(shared.errors, "/dev/shm has 1.0 MB left, but 8.4 MB are needed"));
  const std::string check = "'$trainctl' check c.yaml --ranks 1 --measure --set 'checkpoint.memory_every=10 steps' ";
  expect(with_mount(folder, "/dev/shm", "size=64k", check + "--set model.layers.0.dense.units=2000"), 6,
         "/dev/shm: no copies of the run's state can be kept in memory: it has 65.5 kB left, but two copies need 160.0 "
         "kB");
}

}  // namespace
}  // namespace trainctl::test::launch_test
