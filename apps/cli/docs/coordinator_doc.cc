#include "apps/cli/program_doc.h"

namespace fedge::apps {

ProgramDoc coordinator_doc() {
  return {
      "fedge-coordinator",
      {{"",
        "",
        "The coordinator daemon: enrols clients and executes federated runs",
        {{"Execute the runs that 'fedge run submit' adds",
          "fedge-coordinator --data-dir /var/lib/fedge --listen 0.0.0.0:7433"},
         {"Execute one run and exit when it has ended",
          "fedge-coordinator --data-dir /var/lib/fedge --run fashion.toml --out results"},
         {"Check a configuration file", "fedge-coordinator --config coordinator.toml --check-config"}},
        {"To let devices join, create tokens with 'fedge token create'; each device then runs 'fedge-client "
         "join'. Options override the keys of the configuration file."},
        {{"Exit codes",
          {{"0",
            "Success; SIGINT or SIGTERM stopped the daemon, or the run of --run has finished or was stopped"},
           {"1", "The command failed, or the run of --run has failed"},
           {"2", "The command line is wrong"}}}}}}};
}

}  // namespace fedge::apps
