#include "apps/cli/program_doc.h"

namespace fedge::apps {
namespace {

constexpr const char* kTraining = "Studies with a run file";
constexpr const char* kStudies = "Studies without a run file";

CommandDoc attack_doc() {
  return {
      "attack",
      kStudies,
      "Simulate hostile nodes in a Kademlia directory, with and without protections",
      {{"Compare no protection, the protections of OpenDHT, and all protections",
        "fedge-lab attack crowd --jobs 2"},
       {"Compare two sets of protections",
        "fedge-lab attack crowd --protect ids --protect ids,groups --ground-bits 16"},
       {"Print JSON",
        "fedge-lab attack poison --protect signatures --protect signatures,all-holders --format json"}},
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
          {{"A first look, in a second", "fedge-lab swarm --nodes 25 --chunks 40 --seeds 2"},
           {"What a plain swarm reveals", "fedge-lab swarm --warmup none --attack sequence"},
           {"Only some of the mechanisms, and only the warm-up",
            "fedge-lab swarm --warmup pre-round,lags --warmup-only"},
           {"Compare a scheduler with the maximum flow of each slot",
            "fedge-lab swarm --scheduler random_fifo --max-flow 1"},
           {"Let owners send their own chunks when the gate blocks all transfers",
            "fedge-lab swarm --spray-ratio 0 --owner-fallback 3"},
           {"Simulate what client daemons do", "fedge-lab swarm --relayed-spray --blended --warmup-only"},
           {"Two sizes of coalition, as JSON", "fedge-lab swarm --coalition 5,25 --jobs 2 --format json"}},
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
      {{"A first look, in seconds", "fedge-lab overlay --nodes 256 --rounds 60 --seeds 2"},
       {"The default: 4096 nodes that never leave, with lookups after a warm-up",
        "fedge-lab overlay --jobs 2"},
       {"Start lookups as soon as the last node has started to join", "fedge-lab overlay --warm-up 0"},
       {"Churn: nodes stay up for 300 rounds on average", "fedge-lab overlay --session-rounds 300"},
       {"Choose the periods so that each overlay has the same maintenance cost",
        "fedge-lab overlay --messages-per-round 10"},
       {"Kademlia only, as JSON", "fedge-lab overlay --kind kademlia --k 8 --alpha 1 --format json"}},
      {"The simulation runs in virtual time. It measures the cost of lookups, their success under churn, and "
       "the cost of maintenance."}};
}

CommandDoc gossip_doc() {
  return {"gossip",
          kTraining,
          "Train a run file's clients without a common model: neighbours mix their models",
          {{"Three neighbours, drawn again in each round",
            "fedge-lab gossip examples/fashion-mlp.toml --degree 3"},
           {"The same neighbours in all rounds",
            "fedge-lab gossip examples/fashion-mlp.toml --degree 3 --topology fixed"},
           {"Every client is a neighbour of every other",
            "fedge-lab gossip examples/fashion-mlp.toml --degree 9"}},
          {"Every client starts with the run file's model. In each round it trains its own model, which then "
           "becomes the weighted sum of its own and its neighbours' models. The weight between neighbours i "
           "and j is 1 / (1 + max(d_i, d_j)), where d is a client's number of neighbours; sample counts do "
           "not matter.",
           "The run file must sample all clients in each round. Models are evaluated as often as "
           "run.evaluate_every says, and in the last round."}};
}

}  // namespace

ProgramDoc lab_doc() {
  return {"fedge-lab",
          {{"",
            "",
            "Studies for researchers: overlay networks, hostile nodes, serverless rounds and gossip",
            {{"Compare overlay networks", "fedge-lab overlay --nodes 256 --rounds 60 --seeds 2"},
             {"Simulate serverless rounds", "fedge-lab swarm --nodes 25 --chunks 40 --seeds 2"}},
            {"Federated runs are simulated by fedge-sim."},
            {{"Exit codes",
              {{"0", "Success"}, {"1", "The command failed"}, {"2", "The command line is wrong"}}}}},
           overlay_doc(),
           attack_doc(),
           swarm_doc(),
           gossip_doc()}};
}

}  // namespace fedge::apps
