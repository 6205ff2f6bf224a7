// trainctl host-agent: the process that watches the ranks of its host for the supervisor.
#include "parallel/launch/watch/host_agent.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "cmd/subcommands.h"

namespace trainctl {

Subcommand host_agent_subcommand() {
  return {host_agent_command, "Watches the ranks of this host for the supervisor",
          "trainctl host-agent --folder FOLDER --mark WORD --host NAME --lease MILLISECONDS", [](CLI::App& app) {
            auto options = std::make_shared<HostAgentOptions>();
            auto lease = std::make_shared<int>(0);
            app.group("");  // hidden: no user calls it
            app.add_option("--folder", options->folder, "The folder of the flight records")->required();
            app.add_option("--mark", options->mark, "The beginning of each line of output")->required();
            app.add_option("--host", options->host, "The supervisor's name for this host")->required();
            app.add_option("--lease", *lease, "Milliseconds without a message after which the ranks end")->required();
            return [options, lease] {
              options->lease = std::chrono::milliseconds(*lease);
              return serve_as_host_agent(*options);
            };
          }};
}

}  // namespace trainctl
