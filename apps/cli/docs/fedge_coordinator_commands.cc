// Help of the `fedge` commands for a coordinator's data directory and for the directory of coordinators.
#include "apps/cli/docs/parts.h"

namespace fedge::apps {
namespace {

constexpr const char* kGroup = "Operate a coordinator";

}  // namespace

std::vector<CommandDoc> token_docs() {
  return {
      {"token", kGroup, "Manage join tokens", {}},
      {"token create",
       "",
       "Create join tokens and print one per line",
       {{"Create three tokens, each for one device",
         "fedge token create --data-dir /var/lib/fedge --address fedge.example.org:7433 --count 3"},
        {"Create one token for 100 devices; approve each device after it has joined",
         "fedge token create --data-dir /var/lib/fedge --uses 100 --approve"},
        {"Create a token at a remote coordinator, for a device with a name and labels",
         "fedge token create --coordinator https://fedge.example.org:7434 --name \"laptop of ward 3\" "
         "--labels "
         "ward-3,laptop"},
        {"Create a token for the device that takes the place of client 7",
         "fedge token create --data-dir /var/lib/fedge --address fedge.example.org:7433 --replaces 7"}},
       {"A token holds the coordinator's address, its public key and a secret. Keep it private until it has "
        "been used."}},
      {"token ls",
       "",
       "List join tokens without their secrets",
       {{"List the tokens", "fedge token ls --data-dir /var/lib/fedge"}}},
      {"token revoke",
       "",
       "Revoke a join token, so that no further client can join with it",
       {{"Revoke token 2", "fedge token revoke 2 --data-dir /var/lib/fedge"}}},
  };
}

std::vector<CommandDoc> client_command_docs() {
  return {
      {"client", kGroup, "Manage enrolled clients", {}},
      {"client ls",
       "",
       "List enrolled clients and unused invitations, with what they did lately",
       {{"List the clients", "fedge client ls --data-dir /var/lib/fedge"},
        {"List the clients that are connected", "fedge client ls --data-dir /var/lib/fedge --online"},
        {"List the clients with a label as JSON",
         "fedge client ls --data-dir /var/lib/fedge --label ward-3 --format json"}},
       {"'accepted' counts the client's tasks whose answer was accepted, 'failures' the others by their "
        "kind: late (the deadline passed), lost (the connection ended), failed (the client failed, or "
        "declined the task) and refused (by the coordinator), the last two with a code. A client that "
        "returns to a lost task may be counted twice."}},
      {"client show",
       "",
       "Show one client: its connection, its runs, its last task and its last failure",
       {{"Show client 7", "fedge client show 7 --data-dir /var/lib/fedge"},
        {"Show client 7 as JSON", "fedge client show 7 --data-dir /var/lib/fedge --format json"}}},
      {"client transfers",
       "",
       "List the models and updates that move between the coordinator and its clients at present",
       {{"List all transfers", "fedge client transfers --data-dir /var/lib/fedge"},
        {"List the transfers of client 7", "fedge client transfers 7 --data-dir /var/lib/fedge"},
        {"List the transfers of run 2 as JSON",
         "fedge client transfers --run 2 --data-dir /var/lib/fedge --format json"}},
       {"A client downloads models and uploads its update. 'done' counts what has moved, and what the "
        "receiver had before. An upload waits for its turn while others upload, and for the disk while "
        "the coordinator's disk is full. 'speed' is that of the last 5 to 10 seconds."}},
      {"client add",
       "",
       "Enrol a device by its public key, without a token",
       {{"Enrol a device with the output of 'fedge-client key'",
         "fedge client add \"$(cat device-key.txt)\" --data-dir /var/lib/fedge"}}},
      {"client set",
       "",
       "Change a client's name, labels or project",
       {{"Name client 7 and label it",
         "fedge client set 7 --data-dir /var/lib/fedge --name \"laptop of ward 3\" --labels ward-3,laptop"}},
       {"--labels replaces all labels of the client. The other values stay."}},
      {"client approve",
       "",
       "Approve a pending client",
       {{"Approve client 7", "fedge client approve 7 --data-dir /var/lib/fedge"}}},
      {"client readmit",
       "",
       "Admit a revoked client again",
       {{"Admit client 7 again, with the key that it has",
         "fedge client readmit 7 --data-dir /var/lib/fedge"}},
       {"A client that was told of its revocation has ended: its owner must start it again. A device that "
        "lost its state needs a new token instead: fedge token create --replaces 7."}},
      {"client revoke",
       "",
       "Revoke a client and disconnect it",
       {{"Revoke client 7", "fedge client revoke 7 --data-dir /var/lib/fedge"}},
       {"A running coordinator disconnects the client within a second. If the client joined with a token "
        "that "
        "others can still use, that token is revoked too."}},
  };
}

std::vector<CommandDoc> run_docs() {
  return {
      {"run",
       kGroup,
       "Submit and manage runs",
       {},
       {"With --data-dir, the commands also work while the coordinator is stopped. A running coordinator "
        "reacts within a second."}},
      {"run submit",
       "",
       "Submit a run file to a coordinator",
       {{"Submit a run", "fedge run submit fashion.toml --data-dir /var/lib/fedge"},
        {"Submit the same run with 20 rounds",
         "fedge run submit fashion.toml --data-dir /var/lib/fedge --set run.rounds=20"},
        {"Submit a run to the remote coordinator of the last login", "fedge run submit fashion.toml"}},
       {"The coordinator checks the run file before it accepts the run. Runs start in the order of "
        "submission. "
        "Paths in the run file are on the coordinator's machine."}},
      {"run ls",
       "",
       "List runs with their states",
       {{"List the runs", "fedge run ls --data-dir /var/lib/fedge"}}},
      {"run show",
       "",
       "Show one run, its last accuracy, its results directory and its run file",
       {{"Show run 1", "fedge run show 1 --data-dir /var/lib/fedge"}},
       {"The results of a run of 'fedge-coordinator --run' are in the directory of --out, which is not "
        "shown."}},
      {"run log",
       "",
       "Show the metrics of each round of a run",
       {{"Show the rounds of run 1", "fedge run log 1 --data-dir /var/lib/fedge"},
        {"Print each round when it is complete, until the run ends or is paused",
         "fedge run log 1 --data-dir /var/lib/fedge --follow"},
        {"Print the lines of metrics.jsonl", "fedge run log 1 --data-dir /var/lib/fedge --format json"}},
       {"The column 'since start' is the time from the start of the run to the end of the round. It does not "
        "count the time while the run was paused or its coordinator was stopped."}},
      {"run progress",
       "",
       "Show what a run waits for, and the tasks of its current and its last round",
       {{"Show the progress of run 1", "fedge run progress 1 --data-dir /var/lib/fedge"}},
       {"A client's time of training includes the download of the model. A client is 'late' if the deadline "
        "passed, 'unneeded' if the round had enough without it, and 'lost' if its connection ended."}},
      {"run stats",
       "",
       "Show the statistics of the clients' data by which a run normalises",
       {{"Show the statistics of run 1", "fedge run stats 1 --data-dir /var/lib/fedge"},
        {"Print them as JSON", "fedge run stats 1 --data-dir /var/lib/fedge --format json"}},
       {"A run with data.normalise = \"federated\" has statistics after its first round. They are about the "
        "training samples of all clients that took part. Extremes and quartiles come from histograms: each "
        "is "
        "right within the number in the last column, or less."}},
      {"run model",
       "",
       "Get a run's model, also while the run goes on",
       {{"Get the model after the last complete round", "fedge run model 1 --data-dir /var/lib/fedge"},
        {"Get the model after round 3", "fedge run model 1 --round 3 --out round-3.safetensors"},
        {"Get the best model so far", "fedge run model 1 --best --out best.safetensors"}},
       {"The models of earlier rounds are there if the run file sets run.keep_models, and the best one if it "
        "sets run.keep_best. Without options, the model of a run that has ended is its result."}},
      {"run models",
       "",
       "List the rounds whose models are there",
       {{"List them", "fedge run models 1 --data-dir /var/lib/fedge"}}},
      {"run verify",
       "",
       "Replay a run on the coordinator's machine, and compare its models",
       {{"Replay run 1", "fedge run verify 1 --data-dir /var/lib/fedge"},
        {"Replay its first 3 rounds", "fedge run verify 1 --until 3"}},
       {"The coordinator's machine must have the data of the run and fedge-sim (docs/reference/replay.md). "
        "One run "
        "is replayed at a time, with one thread. Exit code 1: there is a difference, or the run cannot be "
        "replayed."}},
      {"run rm",
       "",
       "Remove a run that has ended, with its results, metrics and journal",
       {{"Remove run 1", "fedge run rm 1 --data-dir /var/lib/fedge"}},
       {"The audit log keeps what it says about the run, and no other run gets its number. The coordinator "
        "removes old runs by itself if its configuration sets retention.keep_days."}},
      {"run pause",
       "",
       "Pause a run: its clients receive no further tasks until the run is resumed",
       {{"Pause run 1",
         "fedge run pause 1 --data-dir /var/lib/fedge --reason \"labels are being checked\""}}},
      {"run resume",
       "",
       "Resume a paused run",
       {{"Resume run 1", "fedge run resume 1 --data-dir /var/lib/fedge"}},
       {"The resumed run waits for its start like a newly submitted run."}},
      {"run stop",
       "",
       "Stop a run for good and keep its last model",
       {{"Stop run 1", "fedge run stop 1 --data-dir /var/lib/fedge"}}},
  };
}

std::vector<CommandDoc> tracks_docs() {
  return {
      {"tracks",
       kGroup,
       "Manage disagreements: train models without the influence of some clients",
       {},
       {"A disagreement says whose updates must not influence whose model. Each set of excluded clients has "
        "its own track: a model that only clients outside the set train. See docs/algorithms/tracks.md."}},
      {"tracks resolve",
       "",
       "Show which models a policy creates in one round, and which clients train them",
       {{"Show the tracks of round 4", "fedge tracks resolve examples/tracks.toml --round 4"}},
       {"A policy file lists the clients and their disagreements:"},
       {{"Policy file",
         {{"clients = [\"a\", \"b\", \"c\"]", "Names, or a number n for the names \"0\" to \"n-1\""},
          {"[[disagreement]]", "One section for each disagreement"},
          {"kind = \"inbound\"", "One of full, partial_data, inbound, outbound, bidirectional"},
          {"clients = [\"a\"]", "The clients that disagree"},
          {"against = [\"b\"]", "The clients that they disagree with"},
          {"from_round = 1", "First round; default: 1"},
          {"until_round = 4", "Last round; default: no end"}}}}},
      {"tracks add",
       "",
       "Add a disagreement to a run in progress",
       {{"From the next round on, train client 0's model without client 1",
         "fedge tracks add --data-dir /var/lib/fedge --kind inbound --clients 0 --against 1"}},
       {},
       {{"Kinds",
         {{"full", "Clients of --clients do not take part"},
          {"partial_data", "Clients of --clients train only on a part of their samples (see --withheld)"},
          {"inbound", "Clients of --against must not influence the models of --clients"},
          {"outbound", "Clients of --clients must not influence the models of --against"},
          {"bidirectional", "Both inbound and outbound"}}}}},
      {"tracks lift",
       "",
       "End a disagreement of a run in progress",
       {{"End the first disagreement", "fedge tracks lift 1 --data-dir /var/lib/fedge"}}},
      {"tracks ls",
       "",
       "List the disagreements of a run",
       {{"List the disagreements", "fedge tracks ls --data-dir /var/lib/fedge"}}},
  };
}

std::vector<CommandDoc> dht_docs() {
  return {
      {"dht",
       kGroup,
       "Use the distributed directory (DHT)",
       {},
       {"Coordinators announce their addresses in the directory, so that clients find them after a move."}},
      {"dht node",
       "",
       "Run a node of the directory until SIGINT or SIGTERM stops it",
       {{"Run a node that other nodes can name in --bootstrap", "fedge dht node --listen 0.0.0.0:4222"}}},
      {"dht ls",
       "",
       "List known nodes",
       {{"List the nodes", "fedge dht ls --bootstrap dht.example.org:4222"}}},
      {"dht get",
       "",
       "Show the records under a key",
       {{"Show which coordinator announces the run fashion",
         "fedge dht get run fashion --bootstrap dht.example.org:4222"}},
       {},
       {{"Keys",
         {{"run NAME", "Coordinators that announce a run of this name"},
          {"coordinator KEY", "The coordinator with this public key"},
          {"node KEY RUN", "The status of the client with this public key in a run"},
          {"model KEY RUN [TRACK]", "The current model of a coordinator's run; default track: 0"},
          {"peers OBJECT", "The peers that hold an object"},
          {"key KEY", "Any key of the directory"}}}}},
      {"dht put",
       "",
       "Announce a coordinator in the directory",
       {{"Announce a coordinator that cannot announce itself",
         "fedge dht put --key-file /var/lib/fedge/node.key --address fedge.example.org:7433 "
         "--bootstrap dht.example.org:4222"}},
       {"Other nodes keep the record for at most ten minutes, so repeat the command before the record "
        "expires."}},
      {"dht doctor",
       "",
       "Check whether the directory can be used from this machine",
       {{"Check the directory", "fedge dht doctor --bootstrap dht.example.org:4222"}}},
  };
}

}  // namespace fedge::apps
