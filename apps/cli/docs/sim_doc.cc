#include "apps/cli/program_doc.h"

namespace fedge::apps {
namespace {

constexpr const char* kRuns = "Run files";
constexpr const char* kStudies = "Studies without a run file";

CommandDoc attack_doc() {
  return {
      "attack",
      kStudies,
      "Simulate hostile nodes in a Kademlia directory, with and without protections",
      {{"Compare no protection, the protections of OpenDHT, and all protections",
        "fedge-sim attack crowd --jobs 2"},
       {"Compare two sets of protections",
        "fedge-sim attack crowd --protect ids --protect ids,groups --ground-bits 16"},
       {"Print JSON",
        "fedge-sim attack poison --protect signatures --protect signatures,all-holders --format json"}},
      {"The simulation runs in virtual time. It measures how many lookups succeed, the damage, and the "
       "cost of "
       "each protection."},
      {{"Attacks",
        {{"crowd",
          "Hostile (Sybil) nodes join nearest to a key, so that the records of the key are stored on them"},
         {"eclipse", "Victims hear from hostile nodes only, also after a restart"},
         {"poison", "Holders return forged or old records and fill other nodes with useless records"},
         {"reflect", "Requests carry a victim's address, so that the answers hit the victim"}}},
       {"Protections",
        {{"none", "No protection"},
         {"ids", "A node's id is the hash of its public key (but see --ground-bits)"},
         {"groups", "Accept at most one node of each address group in a bucket, and in a lookup"},
         {"paths", "Follow three disjoint paths in a lookup"},
         {"stable", "Keep an old contact that answers instead of a new one"},
         {"all-holders", "Ask all responsible nodes, not only the first with a record"},
         {"tokens", "Answer a request with a token only, until the requester returns that token"},
         {"signatures", "Store and accept only signed records, and of several only the latest"},
         {"bootstraps", "Bootstrap from three addresses instead of one; the first is hostile"},
         {"saved", "Remember known nodes across a restart"},
         {"opendht", "What OpenDHT does with Fedge's records: all protections except ids, groups and paths"},
         {"all", "All protections"}}}}};
}

CommandDoc swarm_doc() {
  return {"swarm",
          kStudies,
          "Simulate serverless rounds (FLTorrent), in which clients exchange the chunks of their updates",
          {{"A first look, in a second", "fedge-sim swarm --nodes 25 --chunks 40 --seeds 2"},
           {"What a plain swarm reveals", "fedge-sim swarm --warmup none --attack sequence"},
           {"Only some of the mechanisms, and only the warm-up",
            "fedge-sim swarm --warmup pre-round,lags --warmup-only"},
           {"Compare a scheduler with the maximum flow of each slot",
            "fedge-sim swarm --scheduler random_fifo --max-flow 1"},
           {"Let owners send their own chunks when the gate blocks all transfers",
            "fedge-sim swarm --spray-ratio 0 --owner-fallback 3"},
           {"Simulate what client daemons do", "fedge-sim swarm --relayed-spray --blended --warmup-only"},
           {"Two sizes of coalition, as JSON", "fedge-sim swarm --coalition 5,25 --jobs 2 --format json"}},
          {"A warm-up hides which client owns which chunk. The simulation measures the cost of the warm-up "
           "and what "
           "attackers still learn. See docs/algorithms/serverless.md."},
          {{"Mechanisms of --warmup",
            {{"pre-round", "Owners send some chunks to clients that are not neighbours (spraying)"},
             {"lags", "Each client waits for a random number of slots before it sends"},
             {"gating",
              "A client may send --kappa of its own chunks, and only after it holds enough chunks of others"},
             {"non-owner-first", "The tracker prefers a holder that is not the owner"},
             {"all", "All four mechanisms"},
             {"none", "No warm-up: a plain swarm from the first slot on"}}}}};
}

CommandDoc overlay_doc() {
  return {
      "overlay",
      kStudies,
      "Simulate the overlay networks Chord, Pastry and Kademlia and compare them",
      {{"A first look, in seconds", "fedge-sim overlay --nodes 256 --rounds 60 --seeds 2"},
       {"The default: 4096 nodes that never leave, with lookups after a warm-up",
        "fedge-sim overlay --jobs 2"},
       {"Start lookups as soon as the last node has started to join", "fedge-sim overlay --warm-up 0"},
       {"Churn: nodes stay up for 300 rounds on average", "fedge-sim overlay --session-rounds 300"},
       {"Choose the periods so that each overlay has the same maintenance cost",
        "fedge-sim overlay --messages-per-round 10"},
       {"Kademlia only, as JSON", "fedge-sim overlay --kind kademlia --k 8 --alpha 1 --format json"}},
      {"The simulation runs in virtual time. It measures the cost of lookups, their success under churn, and "
       "the cost of maintenance."}};
}

CommandDoc gossip_doc() {
  return {"gossip",
          kRuns,
          "Train a run file's clients without a common model: neighbours mix their models",
          {{"Three neighbours, drawn again in each round",
            "fedge-sim gossip examples/fashion-mlp.toml --degree 3"},
           {"The same neighbours in all rounds",
            "fedge-sim gossip examples/fashion-mlp.toml --degree 3 --topology fixed"},
           {"Every client is a neighbour of every other",
            "fedge-sim gossip examples/fashion-mlp.toml --degree 9"}},
          {"Every client starts with the run file's model. In each round it trains its own model, which then "
           "becomes the weighted sum of its own and its neighbours' models. The weight between neighbours i "
           "and j is 1 / (1 + max(d_i, d_j)), where d is a client's number of neighbours; sample counts do "
           "not matter.",
           "The run file must sample all clients in each round. Models are evaluated as often as "
           "run.evaluate_every says, and in the last round."}};
}

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
         {"Start real processes with sockets and TLS on loopback",
          "fedge-sim run examples/fashion-mlp.toml --mode concrete"}}},
       {"pretrain",
        kRuns,
        "Train a run file's model on all of its data in one place",
        {{"Write a model that run files can name as model.base",
          "fedge-sim pretrain base.toml --out base.safetensors"}},
        {"On SIGINT or SIGTERM the command writes the model trained so far."}},
       gossip_doc(),
       {"report",
        kRuns,
        "Write report.html and metrics.csv of a run again",
        {{"Write the report again", "fedge-sim report out/fashion"}}},
       {"strategies",
        kRuns,
        "List strategies, samplers and other parts of a run, with their options",
        {{"List all", "fedge-sim strategies"}, {"Show one, with its options", "fedge-sim strategies krum"}},
        {"A program of your own that registers an aggregator or a sampler and calls sim_main() lists them, "
         "too."}},
       {"replay",
        kRuns,
        "Replay a coordinator's run from its journal and compare all updates and models",
        {{"Replay the last run", "fedge-sim replay /var/lib/fedge"},
         {"Replay run 2 up to round 10", "fedge-sim replay /var/lib/fedge --run 2 --until 10"}},
        {"The command changes nothing, and the coordinator may be running. Exit code 1 means that something "
         "differs; the error names the first difference. See docs/reference/replay.md."}},
       {"coordinator",
        kRuns,
        "Run a coordinator that also has the aggregators and samplers that this program registers",
        {{"Run a coordinator", "fedge-sim coordinator --data-dir /var/lib/fedge --listen 0.0.0.0:7433"}},
        {"The options are those of fedge-coordinator. A program of your own that registers an aggregator or "
         "a sampler and calls sim_main() also has this command: use it instead of fedge-coordinator. See "
         "docs/guide/extend.md."}},
       overlay_doc(),
       attack_doc(),
       swarm_doc()}};
}

}  // namespace fedge::apps
