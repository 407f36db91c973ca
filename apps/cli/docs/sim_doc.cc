#include "apps/cli/program_doc.h"

namespace fedge::apps {
namespace {

constexpr const char* kRuns = "Run files";
}  // namespace

ProgramDoc sim_doc() {
  return {
      "fedge-sim",
      {{"",
        "",
        "The simulator: executes federated runs on this machine, with real training of real models",
        {{"Simulate a run", "fedge-sim run examples/fashion-mlp.toml --out out/fashion"},
         {"Check a run file without running it", "fedge-sim run examples/fashion-mlp.toml --check"},
         {"Write the report of a finished run again", "fedge-sim report out/fashion"}},
        {},
        {{"Exit codes",
          {{"0", "Success"},
           {"1", "The command failed"},
           {"2", "The command line is wrong"},
           {"128 + n", "Signal n ended the run: 130 for SIGINT, 143 for SIGTERM"}}}}},
       {"run",
        kRuns,
        "Simulate a run file",
        {{"Simulate a run", "fedge-sim run examples/fashion-mlp.toml --out out/fashion"},
         {"Override keys of the run file",
          "fedge-sim run examples/fashion-mlp.toml --set run.seed=8 --set training.local_epochs=2"},
         {"Continue an interrupted run",
          "fedge-sim run examples/fashion-mlp.toml --out out/fashion --resume"},
         {"Start real processes with sockets and TLS on loopback",
          "fedge-sim run examples/fashion-mlp.toml --mode concrete"},
         {"Train with your own program (docs/reference/trainer-protocol.md)",
          "fedge-sim run run.toml --trainer \"python3 train.py\" --workers 2"}}},
       {"sweep",
        kRuns,
        "Simulate combinations of settings with several seeds, and compare their results",
        {{"Two strategies and two settings of the data, five seeds each",
          "fedge-sim sweep run.toml --grid strategy.kind=fedavg,fedprox --grid data.partition.alpha=0.1,1 "
          "--seeds 5 --out out/sweep"},
         {"Compare with FedAvg seed by seed",
          "fedge-sim sweep run.toml --grid strategy.kind=fedavg,fedprox --seeds 5 --baseline fedavg"},
         {"Execute a sweep file, two runs at a time",
          "fedge-sim sweep bench/experiments/non_iid.toml --jobs 2 --out out/non_iid"},
         {"Train with your own program in each run",
          "fedge-sim sweep run.toml --grid training.batch_size=10,20 -- --trainer \"python3 train.py\""}},
        {"The same command continues an interrupted sweep, and skips the runs that are complete. "
         "See docs/guide/sweeps.md."}},
       {"compare",
        kRuns,
        "Draw and tabulate the results of several runs",
        {{"Compare the groups of a sweep with FedAvg",
          "fedge-sim compare out/sweep --baseline fedavg --out out/comparison"},
         {"Compare single runs", "fedge-sim compare out/fedavg out/fedprox"}},
        {"The page compare.html is self-contained. Each figure is also an SVG file and, if rsvg-convert is "
         "installed (Debian package librsvg2-bin), a PDF file. See docs/guide/sweeps.md."}},
       {"pretrain",
        kRuns,
        "Train a run file's model on all of its data in one place",
        {{"Write a model that run files can name as model.base",
          "fedge-sim pretrain base.toml --out base.safetensors"}},
        {"On SIGINT or SIGTERM the command writes the model trained so far."}},
       {"report",
        kRuns,
        "Write report.html and metrics.csv of a run again",
        {{"Write the report again", "fedge-sim report out/fashion"},
         {"Also write a file for TensorBoard", "fedge-sim report out/fashion --tensorboard"}}},
       {"strategies",
        kRuns,
        "List strategies, samplers and other parts of a run, with their options",
        {{"List all", "fedge-sim strategies"}, {"Show one, with its options", "fedge-sim strategies krum"}},
        {"A program of your own that registers parts and calls sim_main() lists them, too."}},
       {"replay",
        kRuns,
        "Replay a coordinator's run from its journal and compare all updates and models",
        {{"Replay the last run", "fedge-sim replay /var/lib/fedge"},
         {"Replay run 2 up to round 10", "fedge-sim replay /var/lib/fedge --run 2 --until 10"}},
        {"The command changes nothing, and the coordinator may be running. Exit code 1 means that something "
         "differs; the error names the first difference. See docs/reference/replay.md."}},
       {"coordinator",
        kRuns,
        "Run a coordinator that also has the parts that this program registers",
        {{"Run a coordinator", "fedge-sim coordinator --data-dir /var/lib/fedge --listen 0.0.0.0:7433"}},
        {"The options are those of fedge-coordinator. A program of your own that registers parts and calls "
         "sim_main() also has this command: use it instead of fedge-coordinator. See docs/guide/extend.md."}},
       {"client",
        kRuns,
        "Run a client that also has the parts that this program registers",
        {{"Run a client", "fedge-sim client run --token-file token.txt"}},
        {"The options are those of fedge-client. A program of your own that registers parts and calls "
         "sim_main() also has this command: use it instead of fedge-client. See docs/guide/extend.md."}}}};
}

}  // namespace fedge::apps
