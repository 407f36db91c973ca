// Help of the `fedge` commands for data and models in files.
#include "apps/cli/docs/parts.h"

namespace fedge::apps {
namespace {

constexpr const char* kModelGroup = "Work with data and models";

constexpr const char* kPreface = R"(# Command line

The commands and options of all programs. This page is generated from the programs' help:

```sh example
for program in fedge fedge-coordinator fedge-client fedge-sim fedge-lab; do
  $program --help-markdown
done > docs/reference/command-line.md
```

| program | purpose |
| --- | --- |
| [`fedge`](#fedge) | Manage a coordinator's clients and runs; work with models and data in files |
| [`fedge-coordinator`](#fedge-coordinator) | The daemon of an organisation that hosts a federation |
| [`fedge-client`](#fedge-client) | The daemon of an edge device |
| [`fedge-sim`](#fedge-sim) | Simulate federated runs on one machine |
| [`fedge-lab`](#fedge-lab) | Study overlay networks, hostile nodes, serverless rounds and gossip |

- Every program and every command accepts `-h` and `--help`. Every program accepts `--version`.
- `PROGRAM --completion bash` (or `zsh`, `fish`) prints a script that completes its command line; `PROGRAM --help-man`
  prints its manual page. `cmake --install` installs both.
- Results go to standard output, errors and logs to standard error.
- A wrong command line ends with exit code 2. The error suggests the nearest command, option or value.
- In the examples, `/var/lib/fedge`, `fedge.example.org` and `dht.example.org` stand for your own data directory and
  hosts.
)";

}  // namespace

std::vector<CommandDoc> data_docs() {
  return {
      {"data", kModelGroup, "Show and export how a run file divides the data over its clients", {}},
      {"data ls",
       "",
       "List the number of samples of each client, by class",
       {{"List the samples of a run file", "fedge data ls examples/fashion-mlp.toml"}}},
      {"data partition",
       "",
       "Write each client's training samples to a file",
       {{"Write one file for each client", "fedge data partition examples/fashion-mlp.toml --out parts"},
        {"Write the samples of client 3 only",
         "fedge data partition examples/fashion-mlp.toml --out parts --client 3"}},
       {"Images become client-N.safetensors, texts become client-N.txt. A trainer program can read them."}},
      {"data screen",
       "",
       "Find the events in recorded streams of a sensor, and write the segments around them",
       {{"Show what screening keeps of a stream", "fedge data screen drive.csv"},
        {"Write the segments of several devices, for a simulation",
         "fedge data screen drives/*.csv --screening road.toml --out segments"}},
       {"The first line of a stream names its columns: seconds, the sensor's channels, and if known label, "
        "speed and metres. `fedge-client run --stream` does the same while the stream is recorded."}},
      {"data synthesize", "", "Write synthetic data", {}},
      {"data synthesize road",
       "",
       "Write synthetic streams of vehicles' acceleration on a road with potholes and other events",
       {{"Write half an hour of ten vehicles", "fedge data synthesize road --out drives"}},
       {"The data are synthetic: they show that a pipeline works, and nothing about real roads."}},
      {"data tokenizer",
       "",
       "Learn a byte-pair encoding (BPE) from a corpus",
       {{"Learn 1024 tokens", "fedge data tokenizer sotu --vocabulary 1024 --out sotu.bpe"}},
       {"To train with the encoding, set the run file's key data.tokenizer.file to the output file."}},
  };
}

std::vector<CommandDoc> model_docs() {
  return {
      {"model", kModelGroup, "Inspect, evaluate and use a model file", {}},
      {"model info",
       "",
       "List the tensors of a model",
       {{"List the tensors", "fedge model info out/fashion/model.safetensors"}}},
      {"model evaluate",
       "",
       "Evaluate a model on held-out data",
       {{"Evaluate a model on the test (or validation) samples of its own run",
         "fedge model evaluate out/fashion/model.safetensors"},
        {"Add ROUGE-L of two held-out lines from each group",
         "fedge model evaluate out/wordnet/model.safetensors --rouge 2"}},
       {"A model with adapters is evaluated several times: with all ranks of its adapters, and with only the "
        "first ranks (see --ranks)."}},
      {"model events",
       "",
       "List the events that a model finds in the segments of devices' streams",
       {{"List the events of one device", "fedge model events out/model.safetensors segments/vehicle-1"},
        {"List the places at which three devices have found an event",
         "fedge model events out/model.safetensors segments/* --confirm 3"}}},
      {"model import",
       "",
       "Turn a published language model into a model file",
       {{"Import a folder as on Hugging Face", "fedge model import SmolLM-135M --out smollm.safetensors"},
        {"Import a model of llama2.c",
         "fedge model import stories260K.bin --tokenizer tok512.bin --out stories.safetensors"}},
       {"Supported are the Llama family and GPT-2, with weights in float32, float16 or bfloat16. GGUF files "
        "may "
        "also have Q8_0, Q4_0 and Q4_1 tensors. A model that Fedge would compute differently is refused."}},
      {"model generate",
       "",
       "Continue a text with a language model",
       {{"Continue a prompt",
         "fedge model generate base.safetensors --prompt \"Define dog: \" --tokens 40"}}},
      {"model merge",
       "",
       "Add a model's adapters to its matrices and write a model without adapters",
       {{"Merge all ranks", "fedge model merge out/wordnet/model.safetensors --out merged.safetensors"}}},
      {"model adapters",
       "",
       "Write a model's adapters alone, as PEFT reads them",
       {{"Write a folder for PEFT", "fedge model adapters out/wordnet/model.safetensors --out adapters"},
        {"Write one file, with the names of Fedge's layers",
         "fedge model adapters out/wordnet/model.safetensors --out adapters.safetensors"}}},
      {"model export",
       "",
       "Write a language model as a folder that other programs read",
       {{"Write a folder as on Hugging Face",
         "fedge model export out/wordnet/model.safetensors --out published"}},
       {"The folder has config.json, model.safetensors in float32 and, for a tokenizer of a published model, "
        "tokenizer.json. Adapters are added to the matrices."}},
      {"aggregate",
       kModelGroup,
       "Aggregate model files with a strategy",
       {{"Aggregate three models with the trimmed mean",
         "fedge aggregate --strategy trimmed_mean --set trim=1 --out merged.safetensors a.safetensors "
         "b.safetensors c.safetensors"},
        {"Aggregate two models, the first with triple weight",
         "fedge aggregate --strategy fedavg --weights 3,1 --out merged.safetensors a.safetensors "
         "b.safetensors"}},
       {"All files must hold the same tensors in the same order. Strategies that combine adapters by rank, "
        "and those that need more of the clients than their models, are refused: they work only in a run."}},
  };
}

std::vector<CommandDoc> privacy_docs() {
  const std::vector<std::string> notes = {
      "Epsilon is an upper bound for adding or removing one client; with fixed-cohort-gaussian, for "
      "replacing "
      "one client. Without noise, epsilon is infinite: JSON output then has \"epsilon\": null and "
      "\"unbounded\": true. See docs/algorithms/privacy-accounting.md."};
  return {
      {"privacy", kModelGroup, "Calculate differential privacy guarantees", {}, notes},
      {"privacy epsilon",
       "",
       "Calculate epsilon from the noise and the number of rounds",
       {{"Epsilon of 1000 rounds, each with 1 % of the clients",
         "fedge privacy epsilon --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5"},
        {"Epsilon of DP-FTRL, which needs no random sampling",
         "fedge privacy epsilon --mechanism tree --noise-multiplier 7 --steps 2000 --max-participations 6 "
         "--min-separation 313 --delta 1e-10"}},
       notes},
      {"privacy noise",
       "",
       "Calculate the noise that a guarantee needs",
       {{"Noise multiplier for epsilon 2 after 1000 rounds",
         "fedge privacy noise --sampling-rate 0.01 --steps 1000 --epsilon 2 --delta 1e-5"}},
       notes},
      {"privacy rounds",
       "",
       "Calculate how many rounds a guarantee allows",
       {{"Rounds until epsilon is 2",
         "fedge privacy rounds --sampling-rate 0.01 --noise-multiplier 1 --epsilon 2 --delta 1e-5"}},
       notes},
  };
}

ProgramDoc fedge_doc() {
  ProgramDoc doc{"fedge", {}, kPreface};
  doc.commands.push_back(
      {"",
       "",
       "Fedge, federated and edge learning: manage a coordinator's clients and runs, and work with models",
       {{"Create three join tokens",
         "fedge token create --data-dir /var/lib/fedge --address fedge.example.org:7433 --count 3"},
        {"Submit a run", "fedge run submit fashion.toml --data-dir /var/lib/fedge"},
        {"List the strategies that a run file can use", "fedge strategies"}},
       {},
       {{"Exit codes",
         {{"0", "Success"}, {"1", "The command failed"}, {"2", "The command line is wrong"}}}}});
  for (auto* part : {token_docs, client_command_docs, run_docs, tracks_docs, audit_docs, backup_docs,
                     key_docs, user_docs, dht_docs, data_docs, model_docs, privacy_docs})
    for (CommandDoc& command : part()) doc.commands.push_back(std::move(command));
  doc.commands.push_back(
      {"strategies",
       "Look up",
       "List strategies, samplers and other parts of a run, with their options",
       {{"List all", "fedge strategies"}, {"Show one, with its options", "fedge strategies krum"}}});
  doc.commands.push_back(
      {"reference",
       "Look up",
       "List the keys of a configuration file, with types and defaults",
       {{"List the keys of a run file", "fedge reference"},
        {"Explain one key, or the keys of one section", "fedge reference training.batch_size"},
        {"List the keys of a coordinator's configuration", "fedge reference coordinator"}}});
  return doc;
}

}  // namespace fedge::apps
