// Tests launch plans: ranks, slots, threads and mpirun's command line.
#include "parallel/launch/plan.h"

#include <algorithm>

#include "core/base/error.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "test/catch.h"

namespace trainctl::plan_test {
namespace {

LaunchRequest on_cores(int count) {
  LaunchRequest request;
  request.this_host = "desk.example";
  request.cores.allowed.clear();
  for (int core = 0; core < count; ++core) request.cores.allowed.push_back({core});
  request.cores.usable = request.cores.online = count;
  return request;
}

std::string line(const LaunchPlan& plan) {
  std::string text;
  for (const std::string& word : plan.mpirun) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool has(const LaunchPlan& plan, const std::string& words) { return line(plan).find(words) != std::string::npos; }

ErrorKind kind_of_failure(const LaunchRequest& request) {
  try {
    plan_launch(request);
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::internal;
}

TEST_CASE("auto starts a rank for each GPU, else for each core") {
  CHECK(plan_launch(on_cores(6)).ranks == 6);
  CHECK(plan_launch(on_cores(6)).threads == 1);
  LaunchRequest request = on_cores(6);
  request.gpus = 2;
  CHECK(plan_launch(request).ranks == 2);
  CHECK(plan_launch(request).threads == 3);
}

TEST_CASE("ranks have at least 30 s to start, whatever cluster.timeout is, unless the config says how long") {
  ClusterOptions options;
  const auto seconds = [&](double timeout, const Auto<Seconds>& start) {
    options.timeout = Seconds{timeout};
    options.start_timeout = start;
    CHECK(launch_request(options, {}).timeout == std::chrono::duration<double>(timeout));
    const std::chrono::duration<double> limit = launch_request(options, {}).start_timeout;
    return limit.count();
  };
  CHECK(seconds(5, {}) == 30);
  CHECK(seconds(71, {}) == 71);
  CHECK(seconds(0, {}) == 0);  // for ever
  CHECK(seconds(600, {Seconds{2.5}}) == 2.5);
  CHECK(seconds(5, {Seconds{0}}) == 0);
  CHECK(seconds(0, {Seconds{7}}) == 7);
}

TEST_CASE("a run has at least as many ranks as it needs after a loss of hosts") {
  ClusterOptions options;
  options.restarts.min_ranks = 3;
  const auto problem = [&](const LaunchRequest& request) -> std::string {
    try {
      require_min_ranks(options, request, plan_launch(request));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      return error.what();
    }
    return "";
  };
  LaunchRequest request = on_cores(2);
  CHECK(problem(request).empty());  // the number of ranks is that of this host's cores
  request.ranks = 2;
  CHECK(problem(request) ==
        "cluster.restarts.min_ranks is 3, but the run has 2 ranks; start more ranks (--ranks, cluster.ranks), or "
        "choose a smaller min_ranks");
  request.ranks = 3;
  CHECK(problem(request).empty());
  request.ranks.reset();
  request.hosts = {{"a", 1}, {"b", 1}};
  CHECK_FALSE(problem(request).empty());
  request.hosts = {{"a", 1}, {"b", 2}};
  CHECK(problem(request).empty());
}

TEST_CASE("auto starts no more ranks than the strategy allows, and a given number of ranks stays") {
  LaunchRequest request = on_cores(6);
  request.max_ranks = 4;
  CHECK(plan_launch(request).ranks == 4);
  REQUIRE(plan_launch(request).warnings.size() == 1);
  CHECK(plan_launch(request).warnings[0].find("4 of 6 possible ranks start") == 0);
  request.gpus = 8;
  CHECK(plan_launch(request).ranks == 4);
  request.hosts = {{"a", 3}, {"b", 3}};
  CHECK(plan_launch(request).ranks == 4);
  request.ranks = 6;
  CHECK(plan_launch(request).ranks == 6);
  CHECK(plan_launch(request).warnings.empty());
}

TEST_CASE("one rank needs no mpirun and has all cores") {
  LaunchRequest request = on_cores(4);
  request.ranks = 1;
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.mpirun.empty());
  CHECK(plan.threads == 4);
  CHECK_FALSE(plan.oversubscribed);
}

TEST_CASE("ranks on this host use only shared memory and bind themselves") {
  LaunchRequest request = on_cores(5);
  request.ranks = 2;
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.one_host);
  CHECK(plan.threads == 2);
  CHECK(plan.warnings.empty());
  CHECK(plan.environment == Variables::Map{{"GOMP_SPINCOUNT", "4000"}});  // ranks have two threads each
  CHECK(line(plan) ==
        "mpirun -n 2 -H localhost:2 --bind-to none -x OMPI_MCA_orte_bound_at_launch=1 --mca odls_base_num_threads 0 "
        "--mca odls_base_sigkill_timeout 0 "
        "--mca pml ob1 "
        "--mca btl vader,self --mca oob_tcp_if_include lo --mca plm isolated");
}

TEST_CASE("threads of a rank spin briefly, unless the user has set how they wait") {
  LaunchRequest request = on_cores(4);
  request.ranks = 1;
  CHECK(plan_launch(request).environment == Variables::Map{{"GOMP_SPINCOUNT", "4000"}});
  request.variables = Variables{{"OMP_WAIT_POLICY", "active"}};
  CHECK(plan_launch(request).environment.empty());
  request.variables = Variables{};
  request.ranks = 4;
  CHECK(plan_launch(request).environment.empty());
}

TEST_CASE("root needs OpenMPI's permission, and a user's settings stay") {
  LaunchRequest request = on_cores(2);
  request.root = true;
  request.variables = Variables{{"OMPI_MCA_pml", "ucx"}};
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.environment == Variables::Map{{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  CHECK_FALSE(has(plan, "pml"));
  CHECK(has(plan, "--mca btl"));
}

TEST_CASE("more ranks than cores lead to a warning, oversubscription and yielding") {
  LaunchRequest request = on_cores(2);
  request.ranks = 3;
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.oversubscribed);
  CHECK(plan.threads == 1);
  CHECK(plan.warnings.size() == 1);
  CHECK(has(plan, "--oversubscribe --mca mpi_yield_when_idle 1"));
}

TEST_CASE("more ranks than given slots are refused before anything starts") {
  LaunchRequest request = on_cores(16);
  request.hosts = {{"localhost", 2}};
  CHECK(plan_launch(request).ranks == 2);
  request.ranks = 3;
  CHECK(kind_of_failure(request) == ErrorKind::config);
  request.hosts = {{"n1", 2}, {"n2", 1}};
  CHECK_NOTHROW(plan_launch(request));
  request.ranks = 4;
  CHECK(kind_of_failure(request) == ErrorKind::config);
  LaunchRequest gpus = on_cores(16);
  gpus.gpus = 2;
  gpus.ranks = 3;
  CHECK(plan_launch(gpus).ranks == 3);  // the ranks log that they share GPUs
  gpus.communication = Transport::nccl;
  CHECK(kind_of_failure(gpus) == ErrorKind::config);
}

TEST_CASE("given slots may outnumber cores without a warning") {
  LaunchRequest request = on_cores(2);
  request.hosts = {{"desk", 4}};
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.one_host);
  CHECK(plan.ranks == 4);
  CHECK(plan.oversubscribed);
  CHECK(plan.warnings.empty());
  CHECK(has(plan, "-H localhost:4"));
}

TEST_CASE("a plan for several hosts has their slots, MPI's choice of network, and the variables that ranks need") {
  LaunchRequest request = on_cores(4);
  request.hosts = {{"desk", 2}, {"n2", 2}};
  request.forwarded = {"IMAGES", "ABSENT"};
  request.variables = Variables{{"TRAINCTL_DATA", "/data"}, {"IMAGES", "/images"}, {"HOME", "/root"}};
  const LaunchPlan plan = plan_launch(request);
  CHECK_FALSE(plan.one_host);
  CHECK(plan.ranks == 4);
  CHECK(plan.threads == 2);
  CHECK(line(plan) ==
        "mpirun -n 4 -H desk:2,n2:2 --bind-to none -x OMPI_MCA_orte_bound_at_launch=1 --mca odls_base_num_threads 0 "
        "--mca odls_base_sigkill_timeout 0 -x IMAGES -x TRAINCTL_DATA -x GOMP_SPINCOUNT");
  CHECK(plan.first_rank_here);
  request.hosts = {{"n2", 2}, {"desk", 4}};
  CHECK(plan_launch(request).first_rank_here);
  CHECK(plan_launch(request).threads == 1);
  request.hosts = {{"n2", 1}};
  CHECK_FALSE(plan_launch(request).first_rank_here);
  CHECK(plan_launch(request).ranks == 1);
  CHECK(has(plan_launch(request), "-H n2:1"));
}

TEST_CASE("MPI uses loopback on one host, and the network that joins several hosts") {
  LaunchRequest request = on_cores(4);
  CHECK(plan_launch(request).listen_on == "lo");
  CHECK(plan_launch(request).ranks_listen_on.empty());  // they do not listen
  request.hosts = {{"desk", 2}, {"n2", 2}};
  CHECK(plan_launch(request).listen_on.empty());  // the network is not known
  request.network = "10.1.0.0/16";
  CHECK(plan_launch(request).listen_on == "10.1.0.0/16");
  CHECK(plan_launch(request).ranks_listen_on == "10.1.0.0/16");
  CHECK(has(plan_launch(request), "--mca oob_tcp_if_include 10.1.0.0/16 --mca btl_tcp_if_include 10.1.0.0/16"));
  request.variables = Variables{{"OMPI_MCA_oob_tcp_if_include", "ib0"}};  // the user's choice
  CHECK(plan_launch(request).listen_on == "ib0");
  CHECK(plan_launch(request).ranks_listen_on == "10.1.0.0/16");
  CHECK_FALSE(has(plan_launch(request), "oob_tcp_if_include"));
  request.variables = Variables{{"OMPI_MCA_oob_tcp_if_exclude", "eth1"}};
  CHECK(plan_launch(request).listen_on.empty());
  CHECK_FALSE(has(plan_launch(request), "oob_tcp_if_include"));
}

TEST_CASE("OpenMPI 5 gets the settings of its runtime by other options") {
  LaunchRequest request = on_cores(2);
  request.mpi = MpiLibrary::openmpi5;
  request.ranks = 3;
  CHECK(line(plan_launch(request)) ==
        "mpirun -n 3 -H localhost:3 --bind-to none -x OMPI_MCA_orte_bound_at_launch=1 --map-by :oversubscribe "
        "--mca mpi_yield_when_idle 1 --prtemca odls_base_num_threads 0 --pmixmca ptl_tcp_if_include lo --mca pml ob1 "
        "--mca btl sm,self");
  CHECK(plan_launch(request).listen_on == "lo");
  request.ranks = 2;
  request.hosts = {{"desk", 1}, {"n2", 1}};
  request.network = "10.1.0.0/16";
  CHECK(has(plan_launch(request), "--prtemca prte_if_include 10.1.0.0/16 --mca btl_tcp_if_include 10.1.0.0/16"));
  request.variables = Variables{{"PRTE_MCA_prte_if_exclude", "eth1"}};
  CHECK_FALSE(has(plan_launch(request), "prte_if_include"));
}

TEST_CASE("MPICH's ranks get all variables, and other options for hosts and networks") {
  LaunchRequest request = on_cores(2);
  request.mpi = MpiLibrary::mpich;
  request.ranks = 3;
  request.root = true;
  const LaunchPlan plan = plan_launch(request);
  CHECK(line(plan) == "mpiexec -n 3 -bind-to none -print-all-exitcodes -rmk user -launcher fork -iface lo");
  CHECK(plan.environment == Variables::Map{{"MPIR_CVAR_POLLS_BEFORE_YIELD", "1"}, {"UCX_TLS", "sm,self"}});
  CHECK(plan.listen_on == "lo");
  CHECK(plan.ranks_listen_on == "lo");
  request.variables = Variables{{"UCX_TLS", "tcp"}, {"MPIR_CVAR_POLLS_BEFORE_YIELD", "9"}};
  CHECK(plan_launch(request).environment.empty());
  request.ranks = 2;
  request.hosts = {{"desk", 1}, {"n2", 1}};
  CHECK(line(plan_launch(request)) == "mpiexec -n 2 -bind-to none -print-all-exitcodes -rmk user -hosts desk:1,n2:1");
  request.network = "10.1.0.0/16";
  CHECK(plan_launch(request).listen_on == "10.1.0.0/16");
  request.variables = Variables{{"HYDRA_IFACE", "ib0"}, {"TRAINCTL_SECRET", "known here"}};
  CHECK(plan_launch(request).environment.at("TRAINCTL_SECRET").empty());  // no other host learns it
  CHECK(plan_launch(request).listen_on == "ib0");
}

TEST_CASE("ranks of an unknown MPI must be started by the user") {
  LaunchRequest request = on_cores(2);
  request.mpi = MpiLibrary::other;
  CHECK(kind_of_failure(request) == ErrorKind::config);
  request.ranks = 1;
  CHECK_NOTHROW(plan_launch(request));
  CHECK(mpi_library_of("Open MPI v4.1.4, package: Debian OpenMPI") == MpiLibrary::openmpi4);
  CHECK(mpi_library_of("Open MPI v5.0.7, package: Debian OpenMPI") == MpiLibrary::openmpi5);
  CHECK(mpi_library_of("MPICH Version:\t4.0.2\n") == MpiLibrary::mpich);
  CHECK(mpi_library_of("Intel(R) MPI Library 2021.9") == MpiLibrary::other);
}

TEST_CASE("inside a SLURM job its tasks are the slots, and mpirun finds the nodes itself") {
  LaunchRequest request = on_cores(2);
  request.slurm = SlurmJob{{2, 1}};
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.ranks == 3);
  CHECK_FALSE(plan.one_host);
  CHECK(plan.threads == 1);
  CHECK_FALSE(has(plan, "-H"));
  request.ranks = 4;
  CHECK(kind_of_failure(request) == ErrorKind::config);
  request.ranks = 1;
  CHECK(plan_launch(request).mpirun.empty());
  request.ranks.reset();
  request.slurm = SlurmJob{{2}};
  CHECK(plan_launch(request).one_host);
  CHECK(has(plan_launch(request), "-H localhost:2"));
  CHECK(has(plan_launch(request), "--mca ras ^slurm"));
  request.hosts = {{"n1", 1}, {"n2", 1}};  // hosts that are given win
  CHECK(has(plan_launch(request), "-H n1:1,n2:1"));
}

TEST_CASE("a part of a SLURM job's nodes is told to mpirun in SLURM's variables") {
  LaunchRequest request = on_cores(2);
  request.slurm = SlurmJob{{2, 1, 4}, {"n1", "n2", "n3"}};
  CHECK(slots_of(request) == 7);
  CHECK_FALSE(plan_launch(request).environment.contains("SLURM_JOB_NODELIST"));
  request.slurm->leave_out("n9");
  CHECK(slots_of(request) == 7);
  request.slurm->leave_out("n2");
  const LaunchPlan plan = plan_launch(request);
  CHECK(plan.ranks == 6);
  CHECK(plan.nodes == std::vector<std::string>{"n1", "n3"});
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) CHECK(plan.environment.at(name) == "n1,n3");
  CHECK(plan.environment.at("SLURM_TASKS_PER_NODE") == "2,4");
  CHECK(plan.environment.at("SLURM_JOB_NUM_NODES") == "2");
  CHECK(plan.environment.at("SLURM_NTASKS") == "6");
  request.slurm->leave_out("n3");
  CHECK(plan_launch(request).one_host);
  CHECK(has(plan_launch(request), "-H localhost:2"));
}

TEST_CASE("the command line wins over the config") {
  ClusterOptions options;
  options.ranks.given = 3;
  options.hosts = {{"n1", 2}, {"n2", 4}};
  LaunchRequest request = launch_request(options, {});
  CHECK(request.ranks == 3);
  CHECK(request.hosts == std::vector<Host>{{"n1", 2}, {"n2", 4}});
  request = launch_request(options, {"5", "n3:8"});
  CHECK(request.ranks == 5);
  CHECK(request.hosts == std::vector<Host>{{"n3", 8}});
  CHECK_FALSE(launch_request(options, {"auto"}).ranks);
  for (const char* wrong : {"0", "-1", "two", "2x", "1048577", "99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(launch_request(options, {wrong}), Error);
  }
}

TEST_CASE("hosts keep their domains, and user names are passed in a hostfile") {
  LaunchRequest request = on_cores(2);
  request.hosts = {{"desk", 1}, {"10.1.0.2", 1}};
  CHECK(has(plan_launch(request), "-H desk:1,10.1.0.2:1"));
  CHECK_FALSE(has(plan_launch(request), "keep_fqdn"));
  request.hosts[1].name = "node2.example.org";
  CHECK(has(plan_launch(request), "--mca orte_keep_fqdn_hostnames 1"));
  CHECK(plan_launch(request).other_hosts == std::vector<std::string>{"node2.example.org"});
  request.hosts[1].name = "me@node2";
  const LaunchPlan plan = plan_launch(request);
  CHECK_FALSE(has(plan, "-H "));
  CHECK(plan.other_hosts == std::vector<std::string>{"me@node2"});
  CHECK(openmpi_mpirun(4)->hostfile(plan) == "desk slots=1\nme@node2 slots=1\n");
  CHECK(mpich_mpirun()->hostfile(plan) == "desk:1\nnode2:1 user=me\n");
  request.hosts = {{"me@desk.example", 2}};
  CHECK(plan_launch(request).one_host);
}

TEST_CASE("networks that join no hosts are excluded if no other network is known") {
  LaunchRequest request = on_cores(2);
  request.hosts = {{"desk", 1}, {"n2", 1}};
  request.useless_networks = {"172.17.0.0/16", "10.88.0.0/16"};
  CHECK(has(plan_launch(request), "--mca oob_tcp_if_exclude 127.0.0.0/8,172.17.0.0/16,10.88.0.0/16"));
  CHECK(has(plan_launch(request), "--mca btl_tcp_if_exclude 127.0.0.0/8,172.17.0.0/16,10.88.0.0/16"));
  request.network = "10.1.0.0/16";
  CHECK(has(plan_launch(request), "--mca oob_tcp_if_include 10.1.0.0/16"));
  CHECK_FALSE(has(plan_launch(request), "exclude"));
}

}  // namespace
}  // namespace trainctl::plan_test
