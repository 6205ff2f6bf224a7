// Tests the parsers for lists of hosts.
#include "parallel/launch/hosts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "core/base/error.h"
#include "parallel/launch/options.h"
#include "test/catch.h"

namespace trainctl::hosts_test {
namespace {

TEST_CASE("the hosts option reads names and slots") {
  CHECK(parse_hosts("n1:8,n2:4") == std::vector<Host>{{"n1", 8}, {"n2", 4}});
  CHECK(parse_hosts("n1, n2 ,n1") == std::vector<Host>{{"n1", 2}, {"n2", 1}});
  for (const char* wrong : {"", "n1:", "n1:0", "n1:x", "n1:-2", ":3", "n1,,n2", "n1:9999999", "-x:2", "a b:1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_hosts(wrong), Error);
  }
}

TEST_CASE("a hostfile reads like OpenMPI's, and errors name the line") {
  CHECK(parse_hostfile("# ours\nn1 slots=8\n\n  n2 slots=2 max_slots=4 # small\nn3\nn3\n", "hosts") ==
        std::vector<Host>{{"n1", 8}, {"n2", 2}, {"n3", 2}});
  CHECK_THROWS_AS(parse_hostfile("# nothing\n", "hosts"), Error);
  try {
    parse_hostfile("n1 slots=8\nn2 slot=8\n", "hosts");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).starts_with("hosts:2:"));
    CHECK(error.kind() == ErrorKind::config);
  }
  CHECK_THROWS_AS(read_hostfile("/nonexistent/hosts"), Error);
}

TEST_CASE("a hostfile may use every notation that OpenMPI reads") {
  const std::vector<Host> two = {{"n1", 8}, {"n2", 2}};
  CHECK(parse_hostfile("n1 slots = 8\nn2 slots= 2 max_slots =4\n", "hosts") == two);
  CHECK(parse_hostfile("\xef\xbb\xbfn1 slots=8\r\nn2\tslots=2\r\n", "hosts") == two);
  CHECK(parse_hostfile("n1 cpus=8\nn2 count=2 max-slots=2\n", "hosts") == two);
  CHECK(parse_hostfile("n1 cpu=8 slots_max=16\nn2 slots=1\nn2 # once more\n", "hosts") == two);
  CHECK(parse_hostfile("me@n1 slots=8\nn2 slots=2 username = you\n", "hosts") ==
        std::vector<Host>{{"me@n1", 8}, {"you@n2", 2}});
  for (const char* wrong :
       {"n1 slots", "n1 slots =", "n1 slots 8", "n1 slots=8=9", "n1 = 8", "n1 slots=0", "n1 slots=x", "n1 rank=1",
        "me@ slots=2", "@n1", "a@b@c", "n1 username=-x", "n1 max_slots=-1", "=8"}) {
    CAPTURE(wrong);
    try {
      parse_hostfile("# a comment\n" + std::string(wrong), "hosts");
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).starts_with("hosts:2:1: "));
    }
  }
}

TEST_CASE("a user name may precede a host's name") {
  CHECK(parse_hosts("me@n1:8,n2") == std::vector<Host>{{"me@n1", 8}, {"n2", 1}});
  CHECK(without_user("me@n1") == "n1");
  CHECK(without_user("n1") == "n1");
  for (const char* wrong : {"me@:1", "@n1:1", "-oProxyCommand@n1:1", "me@-x:1", "a@b@c:1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_hosts(wrong), Error);
  }
}

TEST_CASE("a hostfile that is not a regular file is refused without waiting for it") {
  std::string folder = "/tmp/trainctl-hosts-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string pipe = folder + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), folder}) {
    CAPTURE(path);
    try {
      read_hostfile(path);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(std::string(error.what()).starts_with(path));
    }
  }
  unlink(pipe.c_str());
  rmdir(folder.c_str());
}

TEST_CASE("SLURM's counts are expanded") {
  CHECK(expand_counts("2(x3),1") == std::vector<int>{2, 2, 2, 1});
  CHECK(expand_counts("16") == std::vector<int>{16});
  for (const char* wrong : {"", "2(x", "2(x0)", "a", "2,,3"}) {
    CAPTURE(wrong);
    CHECK_FALSE(expand_counts(wrong));
  }
}

TEST_CASE("the tasks of a SLURM job are read from its variables") {
  CHECK_FALSE(find_slurm_job(Variables()));
  const auto job = find_slurm_job(Variables{{"SLURM_JOB_ID", "3"}, {"SLURM_TASKS_PER_NODE", "2(x2),1"}});
  REQUIRE(job);
  CHECK(job->slots == std::vector<int>{2, 2, 1});
  CHECK(find_slurm_job(Variables{{"SLURM_JOB_ID", "3"}, {"SLURM_JOB_NUM_NODES", "4"}})->nodes() == 4);
}

TEST_CASE("slots add up without overflow") {
  CHECK(total_slots({{"a", 3}, {"b", max_slots - 3}}) == max_slots);
  CHECK_THROWS_AS(total_slots({{"a", max_slots}, {"b", 1}}), Error);
  CHECK_THROWS_AS(total_slots(std::vector<Host>(5000, {"a", max_slots})), Error);
  std::string many = "n1:1048576";
  for (int i = 0; i < 3000; ++i) many += ",n1:1048576";
  CHECK_THROWS_AS(total_slots(parse_hosts(many)), Error);
}

TEST_CASE("host names in a config follow the rules of --hosts and hostfiles") {
  const auto errors = [](const std::string& name) {
    Reader reader;
    Node hosts = map_node(), cluster = map_node();
    append(hosts, name, scalar_node("2"));
    append(cluster, "hosts", std::move(hosts));
    ClusterOptions options;
    section_of<ClusterOptions>().read(cluster, reader, &options);
    return reader.diagnostics().size();
  };
  for (const char* good : {"n1", "node-3.cluster_a", "10.0.0.7"}) {
    CAPTURE(good);
    CHECK(errors(good) == 0);
    CHECK_NOTHROW(parse_hosts(good));
    CHECK_NOTHROW(parse_hostfile(good, "hosts"));
  }
  for (const char* wrong : {"-x foo", "-oProxyCommand=x", "a b", "n1;id", "$(id)", "", "n1/2", "ü"}) {
    CAPTURE(wrong);
    CHECK(errors(wrong) == 1);
    CHECK_THROWS_AS(parse_hosts(wrong), Error);
    CHECK_THROWS_AS(parse_hostfile(wrong, "hosts"), Error);
  }
}

TEST_CASE("SLURM's names are expanded, and an invalid list returns no names") {
  using Names = std::vector<std::string>;
  CHECK(expand_names("n1") == Names{"n1"});
  CHECK(expand_names("a,b.c") == Names{"a", "b.c"});
  CHECK(expand_names("n[1-3],login,m[08-10,2]") == Names{"n1", "n2", "n3", "login", "m08", "m09", "m10", "m2"});
  for (const char* wrong : {"", "n[1-3", "n[3-1]", "n[a]", "n[1]m[2]", "-x", "n[1-2000000]", "n[1-99999999999]"}) {
    CAPTURE(wrong);
    CHECK(expand_names(wrong).empty());
  }
}

TEST_CASE("SLURM's variables that are malformed are refused with their value and the form") {
  const auto refused = [](const char* name, const std::string& value, const std::string& form) {
    CAPTURE(name, value);
    CHECK_THROWS_WITH(find_slurm_job(Variables{{"SLURM_JOB_ID", "3"}, {name, value}}),
                      Catch::Contains(std::string(name) + " is '" + value + "', but it must") && Catch::Contains(form));
  };
  for (const char* tasks : {"abc", "2,", "2(x3", "0", "2(x)", "-1"}) refused("SLURM_TASKS_PER_NODE", tasks, "2(x3),1");
  for (const char* nodes : {"n[1-3", "n[3-1]", "n[a]", "n[]", "a,,b", "a b", ",a", "n1]", "a;b", "n[1-3],"}) {
    refused("SLURM_JOB_NODELIST", nodes, "a,n[1-3]");
  }
  // Lists that SLURM writes, although the names of the last two are not expanded.
  for (const char* nodes : {"n1", "a,b.c", "n[1-3],login,m[08-10,2]", "n[1-2]-ib", "r[0-1]n[0-3]"}) {
    CHECK_NOTHROW(find_slurm_job(Variables{{"SLURM_JOB_ID", "3"}, {"SLURM_JOB_NODELIST", nodes}}));
  }
}

TEST_CASE("SLURM's variables with more than a job can have are refused quickly") {
  const std::clock_t begin = std::clock();
  CHECK_FALSE(expand_counts("1(x1048576),1(x1048576),1(x1048576)"));
  CHECK_FALSE(expand_counts("1048576(x2)"));
  CHECK(expand_counts("1(x1048576)")->size() == 1048576);
  CHECK(expand_names("n[" + std::string(5000, '0') + "1-1000000]").empty());
  CHECK(expand_names("n[1-1000000],m[1-1000000]").empty());
  CHECK(expand_names(std::string(300, 'n')).empty());
  CHECK(expand_names("n[2147483646-2147483647]") == std::vector<std::string>{"n2147483646", "n2147483647"});
  CHECK(expand_names(std::string(240, 'n') + "[1-1000000]").empty());  // all names together would have 240 MB
  CHECK(expand_names("n[0001-1000]").size() == 1000);
  for (const char* nodes : {"2147483647", "1048577", "0", "-1", "99999999999", "x"}) {
    CAPTURE(nodes);
    CHECK_THROWS_AS(find_slurm_job(Variables{{"SLURM_JOB_ID", "3"}, {"SLURM_JOB_NUM_NODES", nodes}}), Error);
  }
  CHECK_THROWS_AS(find_slurm_job(Variables{{"SLURM_JOB_ID", "3"}, {"SLURM_TASKS_PER_NODE", "1(x1048576),1(x1048576)"}}),
                  Error);
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "node" + std::to_string(i) + "\n";
  CHECK(parse_hostfile(many, "hosts").size() == 200'000);
  CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);  // CPU time
}

}  // namespace
}  // namespace trainctl::hosts_test
